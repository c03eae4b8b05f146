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

static PyObject *multiply(PyObject *module, PyObject *arguments)
{
    Py_buffer left, right, out;
    Py_ssize_t count, n, inner, m;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*y*w*nnnn", &left, &right, &out, &count, &n, &inner, &m))
        return NULL;
    Py_ssize_t size = sizeof(double);
    int fits = left.len == count * n * inner * size && right.len == count * inner * m * size &&
               out.len == count * n * m * size;
    double *panel = fits ? malloc((size_t)inner * COLUMNS * sizeof(double) + 1) : NULL;
    if (panel) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < count; i++)
            product((const double *)left.buf + i * n * inner,
                    (const double *)right.buf + i * inner * m, (double *)out.buf + i * n * m, n,
                    inner, m, panel);
        Py_END_ALLOW_THREADS
        free(panel);
    }
    PyBuffer_Release(&left);
    PyBuffer_Release(&right);
    PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "buffers do not have the sizes that were given");
        return NULL;
    }
    if (!panel)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"multiply", multiply, METH_VARARGS,
     "multiply(left, right, out, count, n, inner, m): contiguous stacks of matrices."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_products", NULL, 0, methods,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__products(void)
{
    return PyModule_Create(&definition);
}
