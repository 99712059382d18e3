/* PPO's epochs of minibatches on small multilayer perceptrons, one run after the other, each from first to last minibatch
 * while its parameters are in the cache.
 *
 * A vector is as wide as a register of the processor that the compiler is told of; arithmetic is the language's own, lane
 * by lane. Rows are padded to whole cache lines, so the numbers lie at the same places on every processor. Sums are made
 * in one order, so a run has the same bits alone and in company.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Floats in a cache line; description.py pads rows to it. */
#define LINE 16
/* LANES: floats in a register. A tile of a product is TALL rows of WIDE registers: its sums, a row of B and one number of
 * A fill the registers. A wider tile would be kept in memory; a smaller one would wait for its own sums. */
#define TALL 6
#if defined(__AVX512F__)
#define LANES 16
#define WIDE 4
#elif defined(__AVX__)
#define LANES 8
#define WIDE 2
#elif defined(__aarch64__)
#define LANES 4
#define WIDE 4
#else
#define LANES 4
#define WIDE 2
#endif
/* Registers that one cache line fills. */
#define PARTS (LINE / LANES)
typedef float lanes __attribute__((vector_size(LANES * 4)));
typedef int32_t flags __attribute__((vector_size(LANES * 4)));
#define AT(p) (*(lanes *)(p))
#define READ(p) (*(const lanes *)(p))
/* Before a loop over registers: where it stays a loop, they lie in memory. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define ALWAYS static inline __attribute__((always_inline))

/* to[a, b] = by_first * first[a, b] + by_second * second[a, b], or that added to it. */
typedef struct {
    int64_t first, second, to, outer, inner, from_row, from_column, to_row, to_column, adds;
    float by_first, by_second;
} Entry;

/* Entries from a place of the list on. */
typedef struct { int64_t at, count; } Span;

typedef struct {
    int64_t split;          /* 0: one product; 1: halves of pairs; 2: inputs with and without a change of sign */
    int64_t blocks;         /* the matrices are so many blocks on the diagonal, and zero elsewhere */
    int64_t direct;         /* whether the parameters are the matrix */
    int64_t weight;         /* where they are then */
    int64_t inputs;         /* numbers in a row of the input */
    int64_t even, odd;      /* rows of the two matrices; `even` is all of them where nothing is split */
    int64_t width;          /* columns of a matrix, whole vectors */
    int64_t outputs;        /* numbers in a row of the output */
    Span matrix, offset, by_matrix, by_offset; /* how both are made, and how their gradients are collected */
} Layer;

typedef struct {
    int64_t runs, batch, observation, minibatch, minibatches, layers, features, heads, numbers, parameters;
    Span head, head_offset, deviation, by_head, by_head_offset, by_deviation;
    int64_t components; /* of a discrete action; 0 for a Gaussian one */
    int64_t normalise;
    float clip, value_coefficient, entropy_coefficient, max_norm, bound_penalty, soft_bound, input_scale, masked_logit;
} Job;

static int64_t whole(int64_t n) { return (n + LINE - 1) / LINE * LINE; }

/* C[r, :] = offset + sum over k of A[r * a_row + k * a_sum] * B[k, :], for `rows` x `vectors` of C in registers. */
ALWAYS void tile(const float *A, int64_t a_row, int64_t a_sum, const float *B, int64_t b_row, float *C, int64_t c_row,
                 int64_t sum, const float *offset, const int rows, const int vectors) {
    lanes kept[TALL][WIDE];
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int v = 0; v < vectors; v++)
            kept[r][v] = offset ? READ(offset + v * LANES) : (lanes){0};
    for (int64_t k = 0; k < sum; k++) {
        lanes b[WIDE];
        UNROLL
        for (int v = 0; v < vectors; v++) b[v] = READ(B + k * b_row + v * LANES);
        UNROLL
        for (int r = 0; r < rows; r++) {
            const float a = A[r * a_row + k * a_sum];
            UNROLL
            for (int v = 0; v < vectors; v++) kept[r][v] += a * b[v];
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int v = 0; v < vectors; v++) AT(C + r * c_row + v * LANES) = kept[r][v];
}

/* Columns of C that `vectors` registers fill, in tiles of about equal height: one that is much lower than the others
 * would take as long as they do. */
#define TILE(rows_now, vectors) \
    case rows_now: \
        tile(A, a_row, a_sum, B, b_row, C, c_row, sum, offset, rows_now, vectors); \
        break;
#define STRIP(vectors) \
    static void strip##vectors(const float *A, int64_t a_row, int64_t a_sum, const float *B, int64_t b_row, float *C, \
                               int64_t c_row, int64_t rows, int64_t sum, const float *offset) { \
        const int64_t tiles = (rows + TALL - 1) / TALL, low = tiles ? rows / tiles : 0, higher = rows - low * tiles; \
        for (int64_t i = 0; i < tiles; i++) { \
            const int64_t height = low + (i < higher); \
            switch (height) { \
                TILE(6, vectors) TILE(5, vectors) TILE(4, vectors) TILE(3, vectors) TILE(2, vectors) TILE(1, vectors) \
            } \
            A += height * a_row, C += height * c_row; \
        } \
    }
STRIP(2)
#if WIDE == 4
STRIP(4)
#endif
#if PARTS == 1
STRIP(1)
#endif

/* The product of any size; `columns` is a multiple of LINE. */
static void product(const float *A, int64_t a_row, int64_t a_sum, const float *B, int64_t b_row, float *C, int64_t c_row,
                    int64_t rows, int64_t columns, int64_t sum, const float *offset) {
    int64_t c = 0;
#if WIDE == 4
    for (; c + 4 * LANES <= columns; c += 4 * LANES)
        strip4(A, a_row, a_sum, B + c, b_row, C + c, c_row, rows, sum, offset ? offset + c : 0);
#endif
    for (; c + 2 * LANES <= columns; c += 2 * LANES)
        strip2(A, a_row, a_sum, B + c, b_row, C + c, c_row, rows, sum, offset ? offset + c : 0);
#if PARTS == 1
    for (; c < columns; c += LANES)
        strip1(A, a_row, a_sum, B + c, b_row, C + c, c_row, rows, sum, offset ? offset + c : 0);
#endif
}

/* The product with a matrix of so many blocks on its diagonal. */
static void product_of_blocks(int64_t blocks, const float *A, int64_t a_row, const float *B, int64_t b_row, float *C,
                              int64_t c_row, int64_t rows, int64_t columns, int64_t sum, const float *offset) {
    const int64_t wide = columns / blocks, deep = sum / blocks;
    for (int64_t b = 0; b < blocks; b++)
        product(A + b * deep, a_row, 1, B + b * (deep * b_row + wide), b_row, C + b * wide, c_row, rows, wide, deep,
                offset ? offset + b * wide : 0);
}

/* The blocks on the diagonal of the transpose of A (rows x high) times B (rows x columns). */
static void gradient_of_blocks(int64_t blocks, const float *A, int64_t a_row, const float *B, int64_t columns, float *C,
                               int64_t high, int64_t rows) {
    const int64_t wide = columns / blocks, tall = high / blocks;
    for (int64_t b = 0; b < blocks; b++)
        product(A + b * tall, 1, a_row, B + b * wide, columns, C + b * (tall * columns + wide), columns, tall, wide, rows, 0);
}

/* Blocks of `to` from blocks of `from`: coefficients to matrices, and back for gradients. */
static void combine(const Entry *entries, int64_t count, const float *from, float *to) {
    for (const Entry *e = entries; e < entries + count; e++) {
        int64_t outer = e->outer, inner = e->inner;
        /* Rows that follow one another are one. */
        if (e->from_column == 1 && e->to_column == 1 && e->from_row == inner && e->to_row == inner)
            inner *= outer, outer = 1;
        for (int64_t a = 0; a < outer; a++) {
            const float *x = from + e->first + a * e->from_row, *y = from + e->second + a * e->from_row;
            float *restrict z = to + e->to + a * e->to_row;
            const float u = e->by_first, v = e->by_second;
            if (e->from_column != 1 || e->to_column != 1)
                for (int64_t b = 0; b < inner; b++) {
                    const float more = u * x[b * e->from_column] + v * y[b * e->from_column];
                    z[b * e->to_column] = e->adds ? z[b * e->to_column] + more : more;
                }
            else if (e->adds)
                for (int64_t b = 0; b < inner; b++) z[b] += u * x[b] + v * y[b];
            else
                for (int64_t b = 0; b < inner; b++) z[b] = u * x[b] + v * y[b];
        }
    }
}

/* One of the rounds that transpose LANES x LANES: lanes and rows whose numbers differ by STEP change places. */
#define LOW(j, STEP) ((j) & (STEP) ? LANES + (j) - (STEP) : (j))
#define HIGH(j, STEP) ((j) & (STEP) ? LANES + (j) : (j) + (STEP))
#define FOUR(PICK, STEP, j) PICK(j, STEP), PICK(j + 1, STEP), PICK(j + 2, STEP), PICK(j + 3, STEP)
#if LANES == 16
#define ALL(PICK, STEP) FOUR(PICK, STEP, 0), FOUR(PICK, STEP, 4), FOUR(PICK, STEP, 8), FOUR(PICK, STEP, 12)
#elif LANES == 8
#define ALL(PICK, STEP) FOUR(PICK, STEP, 0), FOUR(PICK, STEP, 4)
#else
#define ALL(PICK, STEP) FOUR(PICK, STEP, 0)
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define SHUFFLE(low, high, ...) __builtin_shuffle(low, high, (flags){__VA_ARGS__})
#else
#define SHUFFLE(low, high, ...) __builtin_shufflevector(low, high, __VA_ARGS__)
#endif
#define ROUND(STEP) \
    UNROLL for (int i = 0; i < LANES; i++) if (!(i & (STEP))) { \
        const lanes low = x[i], high = x[i + (STEP)]; \
        x[i] = SHUFFLE(low, high, ALL(LOW, STEP)); \
        x[i + (STEP)] = SHUFFLE(low, high, ALL(HIGH, STEP)); \
    }

/* to[c, r] = from[r, c] for whole blocks of columns; rows behind `rows` come out as zeros. */
static void transpose(const float *from, int64_t rows, int64_t columns, float *to, int64_t to_row) {
    for (int64_t r = 0; r < whole(rows); r += LANES)
        for (int64_t c = 0; c < columns; c += LANES) {
            lanes x[LANES];
            UNROLL
            for (int i = 0; i < LANES; i++) x[i] = r + i < rows ? READ(from + (r + i) * columns + c) : (lanes){0};
            ROUND(1) ROUND(2)
#if LANES >= 8
            ROUND(4)
#endif
#if LANES >= 16
            ROUND(8)
#endif
            UNROLL
            for (int i = 0; i < LANES; i++) AT(to + (c + i) * to_row + r) = x[i];
        }
}

/* x where it is above 0, else 0; what is not a number stays what it is. */
ALWAYS lanes above(lanes x) { return (lanes)((flags)x & ~(x < 0)); }

/* d where y is above 0, else 0. */
ALWAYS lanes where_above(lanes y, lanes d) { return (lanes)((flags)d & (y > 0)); }

/* The sum of the LINE numbers of a cache line in registers: halves are added until one number is left. */
ALWAYS float total(const lanes *kept) {
    float x[LINE];
    UNROLL
    for (int v = 0; v < PARTS; v++) memcpy(x + v * LANES, kept + v, sizeof(lanes));
    UNROLL
    for (int half = LINE / 2; half; half /= 2)
        UNROLL
        for (int i = 0; i < half; i++) x[i] += x[i + half];
    return x[0];
}

/* What one run needs of a layer while it works; pointers into the scratch. */
typedef struct {
    const float *matrix;
    float *own, *turned, *gradient, *offset, *offset_gradient;
    float *even, *odd, *sum, *difference, *output, *d_output;
} Work;

typedef struct {
    Work layer[16];
    float *head, *head_gradient, *head_offset, *head_offset_gradient, *deviation, *deviation_gradient;
    float *observations, *outputs, *d_outputs, *gradients;
} Space;

static float *take(float **scratch, int64_t n) {
    float *part = *scratch;
    *scratch += whole(n);
    return part;
}

/* Where a run's matrices lie from `matrices` on, and what rows need from `scratch` on; how far each goes. */
static void lay_out(const Job *job, const Layer *layers, int64_t rows, float **matrices, float **scratch, Space *space) {
    for (int64_t i = 0; i < job->layers; i++) {
        const Layer *l = layers + i;
        Work *w = space->layer + i;
        const int64_t size = l->direct ? 0 : (l->even + l->odd) * l->width, offset = l->split ? l->width : l->outputs;
        w->own = take(matrices, size);
        w->turned = take(matrices, l->width * (whole(l->even) + whole(l->odd)));
        w->offset = take(matrices, offset);
        w->gradient = take(scratch, size);
        w->offset_gradient = take(scratch, offset);
        w->even = take(scratch, rows * whole(l->even));
        w->odd = take(scratch, rows * whole(l->odd));
        w->sum = take(scratch, rows * l->width);
        w->difference = take(scratch, rows * l->width);
        w->output = take(scratch, rows * l->outputs);
        w->d_output = take(scratch, rows * l->outputs);
    }
    space->head = take(matrices, job->heads * job->features);
    space->head_offset = take(matrices, job->heads);
    space->deviation = take(matrices, job->numbers);
    space->head_gradient = take(scratch, job->heads * job->features);
    space->head_offset_gradient = take(scratch, job->heads);
    space->deviation_gradient = take(scratch, job->numbers);
    space->observations = take(scratch, rows * job->observation);
    space->outputs = take(scratch, rows * job->heads);
    space->d_outputs = take(scratch, rows * job->heads);
    space->gradients = take(scratch, job->parameters);
}

/* Floats of one run's matrices. */
int64_t matrix_floats(const Job *job, const Layer *layers) {
    Space space;
    float *matrices = 0, *scratch = 0;
    lay_out(job, layers, 0, &matrices, &scratch, &space);
    return (int64_t)((uintptr_t)matrices / sizeof(float));
}

/* Floats that so many rows need. */
int64_t scratch_floats(const Job *job, const Layer *layers, int64_t rows) {
    Space space;
    float *matrices = 0, *scratch = 0;
    lay_out(job, layers, rows, &matrices, &scratch, &space);
    return (int64_t)((uintptr_t)scratch / sizeof(float));
}

/* Matrices and offsets of every layer from one run's parameters. */
static void build(const Job *job, const Layer *layers, const Entry *entries, const float *values, Space *space, int turn) {
    for (int64_t i = 0; i < job->layers; i++) {
        const Layer *l = layers + i;
        Work *w = space->layer + i;
        w->matrix = l->direct ? values + l->weight : w->own;
        combine(entries + l->matrix.at, l->matrix.count, values, w->own);
        combine(entries + l->offset.at, l->offset.count, values, w->offset);
        if (turn && i) {
            transpose(w->matrix, l->even, l->width, w->turned, whole(l->even));
            if (l->split)
                transpose(w->matrix + l->even * l->width, l->odd, l->width, w->turned + l->width * whole(l->even),
                          whole(l->odd));
        }
    }
    combine(entries + job->head.at, job->head.count, values, space->head);
    combine(entries + job->head_offset.at, job->head_offset.count, values, space->head_offset);
    combine(entries + job->deviation.at, job->deviation.count, values, space->deviation);
}

/* Numbers and values of `rows` observations, into space->outputs. */
static void forward(const Job *job, const Layer *layers, const int32_t *places, int64_t rows, Space *space) {
    const float *x = space->observations;
    for (int64_t i = 0; i < job->layers; i++) {
        const Layer *l = layers + i;
        Work *w = space->layer + i;
        const int64_t n = l->outputs;
        if (!l->split) {
            product_of_blocks(l->blocks, x, l->inputs, w->matrix, l->width, w->output, n, rows, n, l->even, w->offset);
            for (int64_t j = 0; j < rows * n; j += LANES) AT(w->output + j) = above(READ(w->output + j));
            x = w->output;
            continue;
        }
        const int64_t even = whole(l->even), odd = whole(l->odd), half = l->width;
        if (l->split == 2) {
            for (int64_t r = 0; r < rows; r++) {
                for (int64_t j = 0; j < l->even; j++) w->even[r * even + j] = x[r * l->inputs + places[j]];
                for (int64_t j = 0; j < l->odd; j++) w->odd[r * odd + j] = x[r * l->inputs + places[l->even + j]];
            }
        } else {
            for (int64_t r = 0; r < rows; r++)
                for (int64_t j = 0; j < even; j += LANES) {
                    const lanes a = READ(x + r * l->inputs + j), b = READ(x + r * l->inputs + even + j);
                    AT(w->even + r * even + j) = a + b;
                    AT(w->odd + r * odd + j) = a - b;
                }
        }
        product_of_blocks(l->blocks, w->even, even, w->matrix, half, w->sum, half, rows, half, l->even, w->offset);
        product_of_blocks(l->blocks, w->odd, odd, w->matrix + l->even * half, half, w->difference, half, rows, half, l->odd, 0);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < half; j += LANES) {
                const lanes s = READ(w->sum + r * half + j), d = READ(w->difference + r * half + j);
                AT(w->output + r * n + j) = above(s + d);
                AT(w->output + r * n + half + j) = above(s - d);
            }
        x = w->output;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t h = 0; h < job->heads; h++) {
            lanes sum[PARTS] = {{0}};
            for (int64_t j = 0; j < job->features; j += LINE)
                UNROLL
                for (int v = 0; v < PARTS; v++)
                    sum[v] += READ(x + r * job->features + j + v * LANES) * READ(space->head + h * job->features + j + v * LANES);
            space->outputs[r * job->heads + h] = total(sum) + space->head_offset[h];
        }
}

/* The gradient of every parameter from space->d_outputs, into space->gradients. */
static void backward(const Job *job, const Layer *layers, const Entry *entries, int64_t rows, Space *space) {
    const int64_t features = job->features, heads = job->heads;
    Work *last = space->layer + job->layers - 1;
    for (int64_t h = 0; h < heads; h++) {
        float sum = 0;
        for (int64_t r = 0; r < rows; r++) sum += space->d_outputs[r * heads + h];
        space->head_offset_gradient[h] = sum;
        for (int64_t j = 0; j < features; j += LANES) {
            lanes kept = {0};
            for (int64_t r = 0; r < rows; r++)
                kept += space->d_outputs[r * heads + h] * READ(last->output + r * features + j);
            AT(space->head_gradient + h * features + j) = kept;
        }
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < features; j += LANES) {
            lanes kept = {0};
            for (int64_t h = 0; h < heads; h++)
                kept += space->d_outputs[r * heads + h] * READ(space->head + h * features + j);
            AT(last->d_output + r * features + j) = kept;
        }
    combine(entries + job->by_head.at, job->by_head.count, space->head_gradient, space->gradients);
    combine(entries + job->by_head_offset.at, job->by_head_offset.count, space->head_offset_gradient, space->gradients);
    combine(entries + job->by_deviation.at, job->by_deviation.count, space->deviation_gradient, space->gradients);
    for (int64_t i = job->layers - 1; i >= 0; i--) {
        const Layer *l = layers + i;
        Work *w = space->layer + i;
        const float *x = i ? space->layer[i - 1].output : space->observations;
        float *d_x = i ? space->layer[i - 1].d_output : 0;
        const int64_t n = l->outputs, half = l->width;
        for (int64_t j = 0; j < rows * n; j += LANES)
            AT(w->d_output + j) = where_above(READ(w->output + j), READ(w->d_output + j));
        if (!l->split) {
            float *gradient = l->direct ? space->gradients + l->weight : w->gradient;
            gradient_of_blocks(l->blocks, x, l->inputs, w->d_output, n, gradient, l->even, rows);
            for (int64_t j = 0; j < n; j += LANES) {
                lanes kept = {0};
                for (int64_t r = 0; r < rows; r++) kept += READ(w->d_output + r * n + j);
                AT(w->offset_gradient + j) = kept;
            }
            if (d_x) product_of_blocks(l->blocks, w->d_output, n, w->turned, whole(l->even), d_x, l->inputs, rows, l->inputs, n, 0);
        } else {
            const int64_t even = whole(l->even), odd = whole(l->odd);
            for (int64_t r = 0; r < rows; r++)
                for (int64_t j = 0; j < half; j += LANES) {
                    const lanes a = READ(w->d_output + r * n + j), b = READ(w->d_output + r * n + half + j);
                    AT(w->sum + r * half + j) = a + b;
                    AT(w->difference + r * half + j) = a - b;
                }
            gradient_of_blocks(l->blocks, w->even, even, w->sum, half, w->gradient, l->even, rows);
            gradient_of_blocks(l->blocks, w->odd, odd, w->difference, half, w->gradient + l->even * half, l->odd, rows);
            for (int64_t j = 0; j < half; j += LANES) {
                lanes kept = {0};
                for (int64_t r = 0; r < rows; r++) kept += READ(w->sum + r * half + j);
                AT(w->offset_gradient + j) = kept;
            }
            if (d_x) {
                product_of_blocks(l->blocks, w->sum, half, w->turned, even, w->even, even, rows, even, half, 0);
                product_of_blocks(l->blocks, w->difference, half, w->turned + half * even, odd, w->odd, odd, rows, odd, half, 0);
                for (int64_t r = 0; r < rows; r++)
                    for (int64_t j = 0; j < even; j += LANES) {
                        const lanes a = READ(w->even + r * even + j), b = READ(w->odd + r * odd + j);
                        AT(d_x + r * l->inputs + j) = a + b;
                        AT(d_x + r * l->inputs + even + j) = a - b;
                    }
            }
        }
        if (!l->direct) combine(entries + l->by_matrix.at, l->by_matrix.count, w->gradient, space->gradients);
        combine(entries + l->by_offset.at, l->by_offset.count, w->offset_gradient, space->gradients);
    }
}

/* Steps that one minibatch learns from; actions are whole or real numbers. */
typedef struct { const void *actions; const float *log_probabilities, *advantages, *returns; const int64_t *order; } Steps;

/* Derivatives of PPO's clipped loss by numbers and values; see learning/losses.py. */
static void derive(const Job *job, const int32_t *choices, const uint8_t *masked, const float *bounds, const Steps *steps,
                   Space *space) {
    const int64_t rows = job->minibatch, heads = job->heads, numbers = heads - 1;
    float centre = 0, spread = 1;
    if (job->normalise) {
        double sum = 0, squares = 0;
        for (int64_t r = 0; r < rows; r++) sum += steps->advantages[steps->order[r]];
        centre = (float)(sum / rows);
        for (int64_t r = 0; r < rows; r++) {
            const double away = steps->advantages[steps->order[r]] - sum / rows;
            squares += away * away;
        }
        /* 1e-8, as in Stable-Baselines3: equal advantages become 0 and not NaN. */
        spread = (float)(sqrt(squares / (rows - 1)) + 1e-8);
    }
    memset(space->deviation_gradient, 0, job->numbers * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        const int64_t from = steps->order[r];
        float *y = space->outputs + r * heads, *d = space->d_outputs + r * heads;
        const float advantage = (steps->advantages[from] - centre) / spread;
        float log_probability = 0, entropy[64], *log_p = y;
        if (job->components) {
            const int64_t *action = (const int64_t *)steps->actions + from * job->components;
            int64_t start = 0;
            for (int64_t c = 0; c < job->components; start += choices[c], c++) {
                float most = -INFINITY, sum = 0;
                for (int64_t j = start; j < start + choices[c]; j++) {
                    if (masked[j]) y[j] = job->masked_logit;
                    most = y[j] > most ? y[j] : most;
                }
                for (int64_t j = start; j < start + choices[c]; j++) sum += expf(y[j] - most);
                const float norm = most + logf(sum);
                entropy[c] = 0;
                for (int64_t j = start; j < start + choices[c]; j++) {
                    log_p[j] = y[j] - norm;
                    d[j] = expf(log_p[j]);
                    entropy[c] -= d[j] * log_p[j];
                }
                log_probability += log_p[start + action[c]];
            }
        } else {
            const float *action = (const float *)steps->actions + from * numbers;
            for (int64_t j = 0; j < numbers; j++) {
                const float z = (action[j] - y[j]) * expf(-space->deviation[j]);
                log_probability -= 0.5f * z * z + space->deviation[j] + 0.91893853320467274f;
            }
        }
        const float ratio = expf(log_probability - steps->log_probabilities[from]);
        const int clipped = (ratio > 1.0f + job->clip && advantage > 0) || (ratio < 1.0f - job->clip && advantage < 0);
        const float weight = clipped ? 0 : -(ratio * advantage);
        if (job->components) {
            const int64_t *action = (const int64_t *)steps->actions + from * job->components;
            int64_t start = 0;
            for (int64_t c = 0; c < job->components; start += choices[c], c++)
                for (int64_t j = start; j < start + choices[c]; j++) {
                    const float chosen = j == start + action[c] ? weight : 0;
                    const float by_entropy = job->entropy_coefficient * (log_p[j] + entropy[c]);
                    d[j] = masked[j] ? 0 : (d[j] * (by_entropy - weight) + chosen) / rows;
                }
        } else {
            const float *action = (const float *)steps->actions + from * numbers;
            for (int64_t j = 0; j < numbers; j++) {
                const float precision = expf(-space->deviation[j]), z = (action[j] - y[j]) * precision;
                d[j] = weight * z * precision;
                if (job->bound_penalty != 0) {
                    const float excess = fabsf(y[j]) / bounds[j] - job->soft_bound;
                    if (excess > 0) d[j] += 2 * job->bound_penalty * excess * (y[j] > 0 ? 1 : -1) / bounds[j];
                }
                d[j] /= rows;
                space->deviation_gradient[j] += (weight * (z * z - 1) - job->entropy_coefficient) / rows;
            }
        }
        d[heads - 1] = (y[heads - 1] - steps->returns[from]) * job->value_coefficient / rows;
    }
}

static lanes root(lanes x) {
    lanes y = x;
    UNROLL
    for (int i = 0; i < LANES; i++) y[i] = sqrtf(x[i]);
    return y;
}

/* Clips the gradient and moves the parameters by Adam; the gradient's norm before. */
static float move(const Job *job, float rate, int64_t step, float *values, float *first, float *second, Space *space) {
    lanes squares[PARTS] = {{0}};
    for (int64_t j = 0; j < job->parameters; j += LINE)
        UNROLL
        for (int v = 0; v < PARTS; v++) {
            const lanes g = READ(space->gradients + j + v * LANES);
            squares[v] += g * g;
        }
    const float norm = sqrtf(total(squares));
    float scale = job->max_norm / (norm + 1e-6f); /* 1e-6: as torch.nn.utils.clip_grad_norm_ */
    scale = scale < 1 ? scale : 1;
    const int finite = isfinite(norm);
    const float pace = (float)(rate / (1 - pow(0.9, (double)step)));
    const float lift = (float)(1 / sqrt(1 - pow(0.999, (double)step)));
    for (int64_t j = 0; j < job->parameters; j += LANES) {
        const lanes g = finite ? READ(space->gradients + j) * scale : (lanes){0};
        lanes *m = (lanes *)(first + j), *v = (lanes *)(second + j), *p = (lanes *)(values + j);
        *m += 0.1f * (g - *m);
        *v = 0.999f * *v + 0.001f * g * g;
        *p -= pace * *m / (root(*v) * lift + 1e-8f);
    }
    return norm;
}

/* The matrices of every run, one after the other. */
void prepare(const Job *job, const Layer *layers, const Entry *entries, const float *values, float *matrices) {
    const int64_t size = matrix_floats(job, layers);
    for (int64_t run = 0; run < job->runs; run++) {
        Space space;
        float *at = matrices + run * size, *scratch = 0;
        lay_out(job, layers, 0, &at, &scratch, &space);
        build(job, layers, entries, values + run * job->parameters, &space, 0);
    }
}

/* Where a run's matrices lie among those of all runs, with room for `rows` observations. */
static void open_run(const Job *job, const Layer *layers, int64_t run, int64_t rows, const float *values, float *matrices,
                     float *scratch, Space *space) {
    float *at = matrices + run * matrix_floats(job, layers), *end = scratch;
    lay_out(job, layers, rows, &at, &end, space);
    for (int64_t i = 0; i < job->layers; i++)
        space->layer[i].matrix = layers[i].direct ? values + run * job->parameters + layers[i].weight : space->layer[i].own;
}

/* The policy's numbers and values of `rows` observations of every run, (runs, rows, heads), where they are wanted. */
void answer(const Job *job, const Layer *layers, const int32_t *places, const uint8_t *masked, const float *values,
            float *matrices, float *scratch, const float *observations, const uint8_t *wanted, int64_t rows,
            float *outputs) {
    const int64_t n = job->observation, heads = job->heads;
    for (int64_t run = 0; run < job->runs; run++) {
        Space space;
        int64_t count = 0;
        open_run(job, layers, run, rows, values, matrices, scratch, &space);
        for (int64_t r = 0; r < rows; r++) {
            if (wanted && !wanted[run * rows + r]) continue;
            for (int64_t j = 0; j < n; j++)
                space.observations[count * n + j] = observations[(run * rows + r) * n + j] * job->input_scale;
            count++;
        }
        if (count) forward(job, layers, places, count, &space);
        count = 0;
        for (int64_t r = 0; r < rows; r++) {
            if (wanted && !wanted[run * rows + r]) continue;
            float *to = outputs + (run * rows + r) * heads;
            memcpy(to, space.outputs + count++ * heads, heads * sizeof(float));
            if (job->components)
                for (int64_t j = 0; j < job->numbers; j++)
                    if (masked[j]) to[j] = job->masked_logit;
        }
    }
}

/* A pole on a cart; masses in kg, lengths in m. `moment` is the pole's mass times its half length. */
typedef struct {
    double gravity, mass, pole_mass, length, moment, force, time_step, furthest, steepest;
    int64_t limit; /* steps of an episode */
} Cart;

/* One Euler step of (x, x', angle, angle'); whether the episode is over. Every operation is rounded by itself, as NumPy
 * does it: two that are fused would leave the environment's own trajectory. */
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("fp-contract=off"), noinline))
#endif
static int push_cart(const Cart *cart, double *state, int right) {
#ifdef __clang__
#pragma clang fp contract(off)
#endif
    const double cosine = cos(state[2]), sine = sin(state[2]), spin = state[3];
    const double pull = ((right ? cart->force : -cart->force) + cart->moment * (spin * spin) * sine) / cart->mass;
    const double inertia = cart->length * (4.0 / 3.0 - cart->pole_mass * (cosine * cosine) / cart->mass);
    const double turn = (cart->gravity * sine - cosine * pull) / inertia;
    const double drive = pull - cart->moment * turn * cosine / cart->mass;
    state[0] += cart->time_step * state[1];
    state[1] += cart->time_step * drive;
    state[2] += cart->time_step * state[3];
    state[3] += cart->time_step * turn;
    return fabs(state[0]) > cart->furthest || fabs(state[2]) > cart->steepest;
}

/* The action that a uniform number selects by the cumulative distribution of logits. */
static int64_t draw_action(const Job *job, const uint8_t *masked, const float *logits, double uniform) {
    double sums[64], most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < job->numbers; j++) {
        sums[j] = masked[j] ? job->masked_logit : logits[j];
        most = sums[j] > most ? sums[j] : most;
    }
    for (int64_t j = 0; j < job->numbers; j++) sums[j] = sum += exp(sums[j] - most);
    int64_t action = 0;
    for (int64_t j = 0; j < job->numbers - 1; j++) action += uniform * sum >= sums[j];
    return action;
}

/* Up to `steps` steps of `episodes` carts of every run: states (runs, episodes, 4), lengths so far, and which still run.
 * Uniform numbers are (runs, steps, episodes). */
void play_carts(const Job *job, const Layer *layers, const int32_t *places, const uint8_t *masked, const float *values,
                float *matrices, float *scratch, const Cart *cart, const double *uniforms, int64_t steps,
                int64_t episodes, double *states, int64_t *lengths, uint8_t *running) {
    const int64_t n = job->observation;
    for (int64_t run = 0; run < job->runs; run++) {
        Space space;
        open_run(job, layers, run, episodes, values, matrices, scratch, &space);
        for (int64_t step = 0; step < steps; step++) {
            int64_t count = 0;
            for (int64_t e = run * episodes; e < (run + 1) * episodes; e++) {
                if (!running[e]) continue;
                for (int64_t j = 0; j < n; j++)
                    space.observations[count * n + j] = (float)states[e * n + j] * job->input_scale;
                count++;
            }
            if (!count) break;
            forward(job, layers, places, count, &space);
            const float *logits = space.outputs;
            for (int64_t e = run * episodes; e < (run + 1) * episodes; e++) {
                if (!running[e]) continue;
                const double uniform = uniforms[(run * steps + step - run) * episodes + e];
                const int64_t action = draw_action(job, masked, logits, uniform);
                logits += job->heads;
                const int over = push_cart(cart, states + e * n, action == 1);
                lengths[e]++;
                running[e] = !over && lengths[e] < cart->limit;
            }
        }
    }
}

/* Learn from one batch of every run. `finite` says of each whether every gradient was. */
void learn(const Job *job, const Layer *layers, const Entry *entries, const int32_t *places, const int32_t *choices,
           const uint8_t *masked, const float *bounds, const float *observations, const void *actions,
           const float *log_probabilities, const float *advantages, const float *returns, const int64_t *orders,
           const float *rates, const int64_t *steps_before, float *values, float *first, float *second, float *matrices,
           float *scratch, uint8_t *finite) {
    Space space;
    float *matrices_end = matrices, *scratch_end = scratch;
    lay_out(job, layers, job->minibatch, &matrices_end, &scratch_end, &space);
    const int64_t n = job->observation, width = job->components ? job->components : job->heads - 1, unit = job->components ? 8 : 4;
    for (int64_t run = 0; run < job->runs; run++) {
        float *p = values + run * job->parameters;
        const int64_t at = run * job->batch;
        finite[run] = 1;
        for (int64_t i = 0; i < job->minibatches; i++) {
            const int64_t *order = orders + (run * job->minibatches + i) * job->minibatch;
            const Steps steps = {(const char *)actions + at * width * unit, log_probabilities + at, advantages + at,
                                 returns + at, order};
            build(job, layers, entries, p, &space, 1);
            for (int64_t r = 0; r < job->minibatch; r++)
                for (int64_t j = 0; j < n; j++)
                    space.observations[r * n + j] = observations[(at + order[r]) * n + j] * job->input_scale;
            forward(job, layers, places, job->minibatch, &space);
            derive(job, choices, masked, bounds, &steps, &space);
            backward(job, layers, entries, job->minibatch, &space);
            const float norm = move(job, rates[run], steps_before[run] + i + 1, p, first + run * job->parameters,
                                    second + run * job->parameters, &space);
            if (!isfinite(norm)) finite[run] = 0;
        }
    }
}
