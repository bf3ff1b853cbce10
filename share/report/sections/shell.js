// The data of a page, and what all its sections are made with.

const data = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("main");
const later = []; // plots are drawn once all of them have their places, so that nothing moves
const plots = (...made) =>
  made.map((each) => {
    later.push(each.draw);
    return each.figure;
  });

function section(level, id, title, ...children) {
  const heading = el("h" + level, {id, text: title});
  return el("section", {"aria-labelledby": id}, heading, ...children);
}
const showPage = () => {
  later.forEach((draw) => draw());
  watch();
  document.documentElement.dataset.ready = "yes";
};
