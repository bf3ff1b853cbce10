#!/usr/bin/env python3
"""horovod_rendezvous.py PORT: the store at which Horovod's Gloo ranks find each other, as horovodrun keeps one.

GET /SCOPE/KEY gives what PUT /SCOPE/KEY has left there, or 404 until then; DELETE says that a rank is done with a scope.
It keeps values for one job and ends by a signal; it knows nothing of elastic jobs."""
import http.server
import signal
import sys
import threading

LARGEST = 1 << 20  # bytes a value: addresses are a few hundred


class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"
    values, lock = {}, threading.Lock()

    def answer(self, code, body=b""):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):  # pylint: disable=invalid-name
        with self.lock:
            value = self.values.get(self.path)
        if value is None:
            self.answer(404)
        else:
            self.answer(200, value)

    def do_PUT(self):  # pylint: disable=invalid-name
        size = self.headers.get("Content-Length", "")
        if not size.isdigit() or int(size) > LARGEST:
            self.answer(413)
            return
        value = self.rfile.read(int(size))
        with self.lock:
            self.values[self.path] = value
        self.answer(200)

    def do_DELETE(self):  # pylint: disable=invalid-name
        self.answer(200)

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        """Ranks ask over and over until the others are there: not worth a line each."""


def main():
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit(f"usage: {sys.argv[0]} PORT")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    http.server.ThreadingHTTPServer.request_queue_size = 1024
    with http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Store) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
