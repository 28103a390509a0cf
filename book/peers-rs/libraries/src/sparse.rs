//! cuSPARSE.

use std::ptr::from_ref;

use cudarc::cusparse::{result, sys};
use syncscope_peer::syncscope::tensor::Tensor;
use syncscope_peer::{Calls, Result};

use crate::handle::Handle;
use crate::{Fixture, SIDE, address, call, checked, dropped, found, prepared};

pub(crate) const CALLS: Calls<Fixture> = &[
    ("cusparseCreate", |f| {
        is_here()?;
        call(f, |_| Ok(Sparse::new(checked(result::create())?, end)))
    }),
    ("cusparseDestroy", |f| dropped(f, sparse)),
    ("cusparseSetStream", |f| {
        let own = sparse(f)?;
        // Safety: both live as long as the call.
        call(f, move |f| checked(unsafe { sys::cusparseSetStream(own.raw(), f.raw.cast()) }.result()))
    }),
    ("cusparseSpMV_bufferSize", |f| {
        let product = Product::new(f)?;
        call(f, move |_| product.room())
    }),
    ("cusparseSpMV first", |f| {
        let make = |f: &Fixture| {
            let product = Product::new(f)?;
            let room = f.stream.zeros([product.room()?.max(1)])?;
            Ok((product, room))
        };
        prepared(f, make, |_, (product, room)| {
            product.multiply(&room)?;
            Ok((product, room))
        })
    }),
    ("cusparseSpMV later", |f| {
        let product = Product::new(f)?;
        let room = f.stream.zeros([product.room()?.max(1)])?;
        call(f, move |_| product.multiply(&room))
    }),
];

type Sparse = Handle<sys::cusparseHandle_t>;

fn is_here() -> Result<()> {
    // Safety: it looks for the library, and calls nothing of it.
    found(unsafe { sys::is_culib_present() }, "cuSPARSE")
}

fn end(handle: sys::cusparseHandle_t) {
    // Safety: it is ended once, by its owner.
    _ = unsafe { result::destroy(handle) };
}

/// A handle on the stream of the fixture.
fn sparse(f: &Fixture) -> Result<Sparse> {
    is_here()?;
    let handle = Sparse::new(checked(result::create())?, end);
    // Safety: the stream lives as long as the process.
    checked(unsafe { sys::cusparseSetStream(handle.raw(), f.raw.cast()) }.result())?;
    Ok(handle)
}

/// A diagonal matrix times a vector.
struct Product {
    handle: Sparse,
    matrix: Handle<sys::cusparseSpMatDescr_t>,
    x: Handle<sys::cusparseDnVecDescr_t>,
    y: Handle<sys::cusparseDnVecDescr_t>,
    /// Where each row begins, and the column of each number.
    _places: [Tensor<i64>; 2],
}

impl Product {
    fn new(f: &Fixture) -> Result<Self> {
        let (handle, n) = (sparse(f)?, SIDE as i64);
        let starts = f.stream.tensor(&(0..=SIDE as i64).collect::<Vec<_>>(), [SIDE + 1])?;
        let columns = f.stream.tensor(&(0..SIDE as i64).collect::<Vec<_>>(), [SIDE])?;
        let (index, base) =
            (sys::cusparseIndexType_t::CUSPARSE_INDEX_64I, sys::cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO);
        let (mut matrix, mut x, mut y) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        let (rows, places) = (address(&starts)?.cast(), address(&columns)?.cast());
        // Safety: a row has one number; the memory outlives what describes it.
        unsafe {
            let values = address(&f.b)?.cast();
            checked(
                sys::cusparseCreateCsr(&mut matrix, n, n, n, rows, places, values, index, index, base, NUMBER).result(),
            )?;
            checked(sys::cusparseCreateDnVec(&mut x, n, address(&f.a)?.cast(), NUMBER).result())?;
            checked(sys::cusparseCreateDnVec(&mut y, n, address(&f.c)?.cast(), NUMBER).result())?;
        }
        let end_vector = |raw| {
            // Safety: it is ended once, by its owner.
            _ = unsafe { sys::cusparseDestroyDnVec(raw as _) };
        };
        Ok(Self {
            handle,
            // Safety: as above.
            matrix: Handle::new(matrix, |raw| _ = unsafe { sys::cusparseDestroySpMat(raw as _) }),
            x: Handle::new(x, end_vector),
            y: Handle::new(y, end_vector),
            _places: [starts, columns],
        })
    }

    /// How many bytes the product needs beside its operands.
    fn room(&self) -> Result<usize> {
        let (mut bytes, [one, none]) = (0, FACTORS.each_ref().map(|factor| from_ref(factor).cast()));
        // Safety: all of them are alive, and the factors are of the host.
        let asked = unsafe {
            sys::cusparseSpMV_bufferSize(
                self.handle.raw(),
                PLAIN,
                one,
                self.matrix.raw() as _,
                self.x.raw() as _,
                none,
                self.y.raw(),
                NUMBER,
                WAY,
                &mut bytes,
            )
        };
        checked(asked.result()).map(|()| bytes)
    }

    fn multiply(&self, room: &Tensor<u8>) -> Result<()> {
        let [one, none] = FACTORS.each_ref().map(|factor| from_ref(factor).cast());
        let room = address(room)?.cast();
        // Safety: as above; the room is as large as was asked for.
        let enqueued = unsafe {
            sys::cusparseSpMV(
                self.handle.raw(),
                PLAIN,
                one,
                self.matrix.raw() as _,
                self.x.raw() as _,
                none,
                self.y.raw(),
                NUMBER,
                WAY,
                room,
            )
        };
        checked(enqueued.result())
    }
}

static FACTORS: [f32; 2] = [1.0, 0.0];
const NUMBER: sys::cudaDataType = sys::cudaDataType::CUDA_R_32F;
const PLAIN: sys::cusparseOperation_t = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
const WAY: sys::cusparseSpMVAlg_t = sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_ALG_DEFAULT;
