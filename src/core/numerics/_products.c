/* Matrix products in the order that `products.py` states, compiled.
 *
 * Eight columns of four rows are summed at once, so the processor has work while each sum waits for
 * its own last addition; within one sum nothing is reordered and nothing is fused. An optional
 * module: where it cannot be built, or does not give the stated bits, numpy does the same slower.
 */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__GNUC__) || FLT_EVAL_METHOD != 0
#error "needs vector types and double arithmetic without excess precision"
#endif

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#if defined(__x86_64__) && defined(__linux__) && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

typedef double lanes __attribute__((vector_size(32), aligned(8)));

enum { ROWS = 4, COLUMNS = 8 };

/* out[n][m] = the sum over k of left[n][k] * right[k][m]; `panel` holds inner * COLUMNS values. */
FOR_EACH_PROCESSOR
static void product(const double *left, const double *right, double *out, Py_ssize_t n,
                    Py_ssize_t inner, Py_ssize_t m, double *panel)
{
    for (Py_ssize_t column = 0; column < m; column += COLUMNS) {
        Py_ssize_t width = m - column < COLUMNS ? m - column : COLUMNS;
        memset(panel, 0, (size_t)inner * COLUMNS * sizeof(double));
        for (Py_ssize_t k = 0; k < inner; k++)
            memcpy(panel + k * COLUMNS, right + k * m + column, (size_t)width * sizeof(double));
        for (Py_ssize_t row = 0; row < n; row += ROWS) {
            Py_ssize_t height = n - row < ROWS ? n - row : ROWS;
            const double *a = left + row * inner;
            const double *b = height > 1 ? a + inner : a;
            const double *c = height > 2 ? a + 2 * inner : a;
            const double *d = height > 3 ? a + 3 * inner : a;
            lanes a0 = {0}, a1 = {0}, b0 = {0}, b1 = {0}, c0 = {0}, c1 = {0}, d0 = {0}, d1 = {0};
            for (Py_ssize_t k = 0; k < inner; k++) {
                const lanes *terms = (const lanes *)(panel + k * COLUMNS);
                lanes first = terms[0], second = terms[1];
                a0 += a[k] * first, a1 += a[k] * second;
                b0 += b[k] * first, b1 += b[k] * second;
                c0 += c[k] * first, c1 += c[k] * second;
                d0 += d[k] * first, d1 += d[k] * second;
            }
            lanes sums[ROWS][2] = {{a0, a1}, {b0, b1}, {c0, c1}, {d0, d1}};
            for (Py_ssize_t r = 0; r < height; r++)
                memcpy(out + (row + r) * m + column, sums[r], (size_t)width * sizeof(double));
        }
    }
}

/* Whether so many values are what the buffer holds; a product that overflows is no size at all. */
static int holds(const Py_buffer *buffer, Py_ssize_t count, Py_ssize_t rows, Py_ssize_t columns)
{
    Py_ssize_t size = sizeof(double);
    return !__builtin_mul_overflow(size, count, &size) &&
           !__builtin_mul_overflow(size, rows, &size) &&
           !__builtin_mul_overflow(size, columns, &size) && size == buffer->len;
}

static int overlap(const Py_buffer *one, const Py_buffer *other)
{
    uintptr_t first = (uintptr_t)one->buf, second = (uintptr_t)other->buf;
    return first < second + (size_t)other->len && second < first + (size_t)one->len;
}

/* A contiguous buffer of aligned doubles in the machine's order, or an exception. */
static int doubles(PyObject *object, Py_buffer *buffer, int flags)
{
    if (PyObject_GetBuffer(object, buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | flags) < 0)
        return 0;
    if (buffer->itemsize == sizeof(double) && buffer->format && !strcmp(buffer->format, "d") &&
        (uintptr_t)buffer->buf % _Alignof(double) == 0)
        return 1;
    PyBuffer_Release(buffer);
    PyErr_SetString(PyExc_TypeError, "expected aligned float64 values, found others");
    return 0;
}

/* What is wrong with the sizes, or nothing. Memory is touched only where nothing is. */
static const char *fault(const Py_buffer *left, const Py_buffer *right, const Py_buffer *out,
                         Py_ssize_t count, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t m)
{
    if (count < 0 || n < 0 || inner < 0 || m < 0)
        return "expected sizes from 0 up, found a negative one";
    if (!holds(left, count, n, inner) || !holds(right, count, inner, m) ||
        !holds(out, count, n, m))
        return "expected buffers of the sizes that were given, found others";
    if (overlap(out, left) || overlap(out, right))
        return "expected an output of its own, found one that overlaps an operand";
    return NULL;
}

static PyObject *multiplied(const Py_buffer *left, const Py_buffer *right, Py_buffer *out,
                            Py_ssize_t count, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t m)
{
    const char *wrong = fault(left, right, out, count, n, inner, m);
    if (wrong) {
        PyErr_SetString(PyExc_ValueError, wrong);
        return NULL;
    }
    if (out->len == 0) /* then no buffer bounds the other sizes */
        Py_RETURN_NONE;
    size_t room = 0; /* for the panel */
    double *panel = NULL;
    if (!__builtin_mul_overflow((size_t)inner, COLUMNS * sizeof(double), &room))
        panel = malloc(room ? room : 1);
    if (!panel)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < count; i++)
        product((const double *)left->buf + i * n * inner,
                (const double *)right->buf + i * inner * m, (double *)out->buf + i * n * m, n,
                inner, m, panel);
    Py_END_ALLOW_THREADS
    free(panel);
    Py_RETURN_NONE;
}

static PyObject *multiply(PyObject *module, PyObject *arguments)
{
    PyObject *operands[2], *result, *answer = NULL;
    Py_buffer left, right, out;
    Py_ssize_t count, n, inner, m;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OOOnnnn", &operands[0], &operands[1], &result, &count, &n,
                          &inner, &m) ||
        !doubles(operands[0], &left, PyBUF_SIMPLE))
        return NULL;
    if (doubles(operands[1], &right, PyBUF_SIMPLE)) {
        if (doubles(result, &out, PyBUF_WRITABLE)) {
            answer = multiplied(&left, &right, &out, count, n, inner, m);
            PyBuffer_Release(&out);
        }
        PyBuffer_Release(&right);
    }
    PyBuffer_Release(&left);
    return answer;
}

static PyMethodDef methods[] = {
    {"multiply", multiply, METH_VARARGS,
     "multiply(left, right, out, count, n, inner, m): contiguous stacks of float64 matrices.\n\n"
     "Raises ValueError for other sizes and an output that overlaps, TypeError for other values."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_products", NULL, 0, methods,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__products(void)
{
    return PyModule_Create(&definition);
}
