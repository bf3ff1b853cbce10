// The C table between the training runtime and its CUDA half: all that crosses the border of the plug-in. No
// CUDA type and no C++ type is in it. A plan goes over once as a flat list of operators; after that only
// steps and numbers do. Activations are NHWC on the device, weights OHWI; the host side converts.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/cuda/plugin/allreduce_table.h"
#include "runtime/cuda/plugin/stage_table.h"

#define DLRUN_CUDA_TABLE_VERSION 15u
#define DLRUN_CUDA_TABLE_SYMBOL "dlrun_cuda_table"

// Kinds of nodes that no graph has: an operator of a graph has its name in graph/operations.hpp as its kind.
#define DLRUN_CUDA_NORM_POOL "norm_pool"  // batch norm, its ReLU and the maximum pooling behind it
#define DLRUN_CUDA_NORM_SUM "norm_sum"    // the sum of two batch norms: its inputs are theirs
#define DLRUN_CUDA_ELIDED "elided"        // fused into a node behind it

// What the memory of values depends on: bits of a node's `facts`.
enum DlrunCudaFact {
  DLRUN_CUDA_BACKWARD_READS_INPUT = 1,   // the value of its first input
  DLRUN_CUDA_BACKWARD_READS_INPUTS = 2,  // the values of all
  DLRUN_CUDA_BACKWARD_READS_OUTPUT = 4,
  DLRUN_CUDA_MULTIPLIES = 8,  // by weights, whose gradient is computed on the side stream
  DLRUN_CUDA_IS_LOSS = 16,    // leaves the gradient of its input in the forward pass
  DLRUN_CUDA_IN_PLACE = 32,   // its value lies where its input's does
  DLRUN_CUDA_IS_ELIDED = 64,  // has no value
  // A sum: the gradients of its inputs (of what a product is added to: of that) lie where its own does, as
  // nobody needs it any more once they change.
  DLRUN_CUDA_PASSES_GRADIENT = 128,
  DLRUN_CUDA_LEAVES_TERMS = 256,  // its bias, or positions: another rank of the tensor group adds them
  DLRUN_CUDA_GATHERED_AGAIN =
      512  // its value is made anew for the way back: what it is of is kept until then
};
enum DlrunCudaActivation {
  DLRUN_CUDA_NO_ACTIVATION,
  DLRUN_CUDA_RELU,
  DLRUN_CUDA_LEAKY_RELU,
  DLRUN_CUDA_TANH
};
// What a node does with the gradients of its parameters: writes them, adds them to those of nodes behind it
// that share the parameters, or has none, as they are frozen. Running statistics are frozen with them.
enum DlrunCudaLearning { DLRUN_CUDA_GRAD_WRITE, DLRUN_CUDA_GRAD_ACCUMULATE, DLRUN_CUDA_FROZEN };
// What becomes of a loss: nothing, it joins DlrunCudaResult's loss_sum and correct, or generator_loss_sum.
enum DlrunCudaReport { DLRUN_CUDA_UNREPORTED, DLRUN_CUDA_REPORTED, DLRUN_CUDA_OF_GENERATOR };
enum DlrunCudaPrecision { DLRUN_CUDA_F32, DLRUN_CUDA_TF32, DLRUN_CUDA_BF16 };
// State: the optimizer's, slot by slot, and behind it the average of the weights where there is one.
enum DlrunCudaArena {
  DLRUN_CUDA_VALUES,
  DLRUN_CUDA_STATISTICS,
  DLRUN_CUDA_STATE_0,
  DLRUN_CUDA_STATE_1,
  DLRUN_CUDA_STATE_2
};
// Of a parameter, what a rank of a tensor group has: all of it, with the gradient of all positions, or with a
// term of that from its slice of the positions; or a part of it.
enum DlrunCudaShare { DLRUN_CUDA_WHOLE, DLRUN_CUDA_TERM, DLRUN_CUDA_PART };
// Staged: copied to the host after backward and back before the update.
enum DlrunCudaGradients { DLRUN_CUDA_GRADIENTS_ON_DEVICE, DLRUN_CUDA_GRADIENTS_STAGED_THROUGH_HOST };
// Whether running statistics move in a training step.
enum DlrunCudaStatistics { DLRUN_CUDA_STATISTICS_UPDATED, DLRUN_CUDA_STATISTICS_UNCHANGED };
// Accumulate: a training step whose gradients are kept, for the next DLRUN_CUDA_TRAIN to add them to its own.
enum DlrunCudaWork { DLRUN_CUDA_TRAIN, DLRUN_CUDA_ACCUMULATE, DLRUN_CUDA_EVALUATE };

#define DLRUN_CUDA_NOWHERE ((size_t)-1)
#define DLRUN_CUDA_MAX_INPUTS 32
#define DLRUN_CUDA_MAX_CHANNELS 8  // of pixels that come as bytes
#define DLRUN_CUDA_MAX_SETTINGS 12
#define DLRUN_CUDA_SLICE_ALIGNMENT 16  // floats: parameters begin at multiples of it

struct DlrunCudaNode {
  const char* kind;
  unsigned facts;
  size_t inputs[DLRUN_CUDA_MAX_INPUTS];
  size_t input_count;
  int64_t in_channels, in_height, in_width;  // of inputs[0]; those of a fully connected layer are one pixel
  int64_t channels, height, width;           // of the output
  int64_t window, stride, padding;           // convolution and pooling; else of one pixel
  int64_t window_width, padding_width;       // of convolutions, where not as the height
  // Of a volume: its planes, which its height counts one behind the other. Windows are cubes. 0: an image.
  int64_t in_depth, depth;
  int64_t groups;                       // of a convolution
  enum DlrunCudaActivation activation;  // what follows in the same pass
  float slope;                          // of a leaky ReLU
  // The operator's settings as graph/operations.hpp has them: that struct, byte by byte.
  uint64_t settings[DLRUN_CUDA_MAX_SETTINGS];
  size_t settings_bytes;
  // Of a linear layer that GELU joined: the node that holds what it is of; of one behind it: that of its
  // input.
  size_t inner, input_inner;
  size_t norms[2];  // of a sum of batch norms: the nodes that joined it and have their parameters
  enum DlrunCudaReport report;
  size_t rng_key;     // of what draws random numbers: which of the keys that begin() gets
  int64_t first_row;  // the number of this rank's first row among all ranks'
  // Floats from the start of their arena, DLRUN_CUDA_NOWHERE where there is none.
  size_t weight, bias, running_mean, running_variance;
  enum DlrunCudaLearning learning;
  uint64_t needs_gradient;  // 1: the gradient of the output is wanted
  // Of a table whose rows, or of a value whose features a tensor group divides: into how many parts. Else 1.
  int64_t parts;
  int64_t part;                 // of the features, where they are divided: the number of this one
  int64_t first_token, tokens;  // of a divided table: the first row here, and the rows of all parts
  // Of a value that the positions of a tensor group's slices make, or of an operator on slices: their number,
  // and that of the one here. Else 1 and 0.
  int64_t slices, slice;
};

// A slice of the arena of gradients that is final once backward of `node` is done.
struct DlrunCudaBucket {
  size_t offset, length, node;
  int waits;  // 1: for gradients of another stage of the pipeline, before it is summed
};

// A parameter's slice of the arenas.
struct DlrunCudaTensor {
  size_t offset, length;
  int is_vector;  // 1: it has one dimension, as a bias has
  int decays;     // 1: it has the step's weight decay
  enum DlrunCudaShare share;
  // What of it has its state of the optimizer here, and the sums of its gradient: all, or some of its floats.
  size_t own_begin, own_end;
  int is_copy;  // 1: an earlier stage of the pipeline has it, too
};

// What of a bucket has its state of the optimizer here: where it begins in the arenas, and in those of the
// state.
struct DlrunCudaOwned {
  size_t offset, length, state;
};

struct DlrunCudaPlan {
  const struct DlrunCudaNode* nodes;
  size_t count;
  const struct DlrunCudaBucket* buckets;
  size_t bucket_count;
  const struct DlrunCudaTensor* parameters;
  size_t parameter_count;
  int64_t batch;
  enum DlrunCudaPrecision precision;
  enum DlrunCudaGradients gradients;
  const char* optimizer;  // its name in optim/list.hpp
  size_t state_slots;     // arenas of its state, and the average's
  int averages;           // 1: the last of them is an average of the weights
  size_t floats;          // of the arenas of values and gradients
  size_t state_floats;    // of those of the state
  // By bucket, where the state is divided among ranks; else NULL.
  const struct DlrunCudaOwned* owned;
  size_t spare;       // of them at the end, which an update leaves alone
  size_t statistics;  // floats
  size_t rng_keys;    // of a step
  int mixes;          // 1: rows have a second label in training
  int64_t targets;    // numbers to be told of a row; 0: it has a label alone
  // Of a stage of a pipeline: how many batches' values are kept at once, each in its place. 0: a whole model.
  size_t places;
  int accumulates;  // 1: DLRUN_CUDA_ACCUMULATE may be asked for where no sum keeps
  // 1: steps are of shards: an algorithm is chosen by the shape and the device, never by time, and begin()
  // may say that statistics stay.
  int of_shards;
  // One number per channel: rows come as bytes, and count as byte * scale + shift. NULL: as floats.
  const float *pixel_scale, *pixel_shift;
};

// What is asked of the other ranks' GPUs: work on `stream` (a cudaStream_t), also while that is captured. 0,
// or it failed. NULL: nobody is there, or has no part in it.
struct DlrunCudaPeers {
  void* context;
  // Of ranks that have other samples: gradients are summed in place. Where the state of the optimizer is
  // divided, `scatter` is in its place: of that bucket of an arena of gradients, the own part becomes the
  // sum. `gather`: the own parts of all buckets of an arena of values come to all ranks. `exchange`: bytes of
  // each rank, in the order of the ranks. `add`: other numbers are summed in place.
  size_t ranks;
  int (*sum)(void* context, float* data, size_t count, void* stream);
  // NULL, or for the gradients of a DLRUN_CUDA_ACCUMULATE, all of them, behind it on `stream`: they are kept
  // for the sums of the next DLRUN_CUDA_TRAIN. Never captured. 0, or it failed.
  int (*keep)(void* context, float* data, size_t count, void* stream);
  int (*scatter)(void* context, float* gradients, size_t bucket, void* stream);
  int (*gather)(void* context, float* values, void* stream);
  int (*exchange)(void* context, const void* mine, void* all, size_t bytes, void* stream);
  int (*add)(void* context, float* data, size_t count, void* stream);
  // Of ranks that have other parts of the model. `half`: 1: the numbers are bf16. `tensor_scatter`: of
  // `count` numbers for each rank, the sum of the own ones goes to `mine`, which may be in their place.
  size_t tensor_ranks;
  int (*tensor_sum)(void* context, void* data, size_t count, int half, void* stream);
  int (*tensor_scatter)(void* context, const void* data, void* mine, size_t count, int half, void* stream);
  int (*tensor_exchange)(void* context, const void* mine, void* all, size_t bytes, void* stream);
  struct DlrunCudaStageCalls stage;
  // Asked while a step runs, as long as it does. Not 0: a peer is lost, and what waits for it on the device
  // was told to end.
  int (*lost)(void* context);
};

struct DlrunCudaResult {
  double loss_sum;
  int64_t correct;
  double generator_loss_sum;
  double absolute, squared, found, marked;  // of rows with targets: engine.hpp has them as TargetSums
  // Milliseconds of a DLRUN_CUDA_TRAIN that sums: until the rank's own gradients were there, and from then on
  // until the sums were.
  float busy, waited;
};

// Functions that return int answer 0, else the reason is in error_text().
struct DlrunCudaTable {
  unsigned version;
  int (*device_count)(int* count);
  int (*device_name)(int device, char* text, size_t capacity);
  // As the libraries number them.
  int (*library_versions)(size_t* cudnn, size_t* cublaslt);
  int (*use)(int device);  // by the calling thread, for libraries that work on its current device
  int (*create)(const struct DlrunCudaPlan* plan, int device, void** engine);
  void (*destroy)(void* engine);
  // From the next step on the gradients of the buckets are summed with these peers, beside backward. Their
  // context must outlive the engine. Of no peers: nothing holds on to what summed before.
  int (*connect)(void* engine, const struct DlrunCudaPeers* peers);
  // Pinned rows for the host to fill, batch x channels x height x width: floats or, where the plan has pixels
  // as bytes, those (then the other is NULL); tokens are int32 in place of floats, with as many labels. Waits
  // until what was staged has left them.
  float* (*input)(void* engine);
  uint8_t* (*pixels)(void* engine);
  int32_t* (*labels)(void* engine);
  // Where the plan mixes: a second label of each row, then as many floats, the weight of the first one.
  int32_t* (*mixed_labels)(void* engine);
  float* (*targets)(void* engine);    // where the plan has them: batch x targets; a label of -1 voids a row
  float* (*gradients)(void* engine);  // pinned, where they are staged
  size_t (*memory_bytes)(void* engine);
  // Sends the rows to the device, beside a step that runs there; the next begin() takes them.
  int (*stage)(void* engine);
  // Starts a step on the rows staged last; end() waits for it. `keys`: plan.rng_keys of them.
  int (*begin)(void* engine, enum DlrunCudaWork work, enum DlrunCudaStatistics statistics,
               const uint64_t* keys);
  // The same of one half of a stage's training step, and of the batch in that place. The result is of the
  // rows of the forward before.
  int (*begin_half)(void* engine, enum DlrunCudaHalf half, size_t place, const uint64_t* keys);
  int (*end)(void* engine, struct DlrunCudaResult* result);
  // One update by the optimizer; `factors`: its kMaxFactors numbers, see optim/factors.hpp. `kept`: the part
  // of the average that stays, where there is one.
  // `clip` limits the norm of all gradients times `scale` before; 0: it does not.
  int (*apply)(void* engine, const float* factors, float kept, float scale, float clip);
  // The weights become their averages, and these the weights.
  int (*swap_averages)(void* engine);
  // All tensors of the state become their means over so many ranks, which all call it; the peers' `sum` adds
  // them up.
  int (*average_state)(void* engine, const struct DlrunCudaPeers* peers, size_t ranks);
  // The value of node `last` after an evaluation of the nodes from `first` on, which read no others: batch x
  // channels x height x width.
  int (*generate)(void* engine, size_t first, size_t last, const uint64_t* keys, float* images);
  // After an evaluation: the scores of what follows each row's `position`, batch x vocabulary.
  int (*next_scores)(void* engine, int64_t position, float* scores);
  // Milliseconds of each node's forward (2 i) and backward (2 i + 1), each timed alone in a graph; then of
  // copying the batch, of an update, and of a whole step (update left out) on a batch that is on the GPU
  // already. What it computes is no training: state and results mean nothing after it.
  int (*profile)(void* engine, float* milliseconds);
  // Milliseconds of one sum of `count` floats by the engine's `sum`, all ranks at once: as the host issues
  // it, and within a graph.
  int (*time_sum)(void* engine, size_t count, float* issued, float* captured);
  int (*read)(void* engine, enum DlrunCudaArena arena, size_t offset, size_t count, float* out);
  int (*write)(void* engine, enum DlrunCudaArena arena, size_t offset, size_t count, const float* values);
  struct DlrunCudaSumCalls sums;
  void (*error_text)(char* text, size_t capacity);  // of the calling thread's last failed call
};
