//! cuSOLVER.

use cudarc::cusolver::{result, sys};
use syncscope_peer::syncscope::tensor::Tensor;
use syncscope_peer::{Calls, Result};

use crate::handle::Handle;
use crate::{Fixture, SIDE, address, call, dropped, found, prepared};

pub(crate) const CALLS: Calls<Fixture> = &[
    ("cusolverDnCreate", |f| {
        is_here()?;
        call(f, |_| Ok(Solver::new(result::dn_create()?, end)))
    }),
    ("cusolverDnDestroy", |f| dropped(f, solver)),
    ("cusolverDnSetStream", |f| {
        let own = solver(f)?;
        // Safety: both live as long as the call.
        call(f, move |f| Ok(unsafe { result::dn_set_stream(own.raw(), f.raw.cast()) }?))
    }),
    ("cusolverDnSpotrf_bufferSize", |f| {
        let own = solver(f)?;
        call(f, move |f| cholesky_room(f, &own))
    }),
    ("cusolverDnSpotrf first", |f| {
        let make = |f: &Fixture| {
            let own = solver(f)?;
            let room = f.stream.zeros([cholesky_room(f, &own)?])?;
            Ok((own, room))
        };
        prepared(f, make, |f, (own, room)| {
            cholesky(f, &own, &room)?;
            Ok((own, room))
        })
    }),
    ("cusolverDnSpotrf later", |f| {
        let own = solver(f)?;
        let room = f.stream.zeros([cholesky_room(f, &own)?])?;
        call(f, move |f| cholesky(f, &own, &room))
    }),
    // What went wrong is on the device: to know it, it is read.
    ("cusolverDnSpotrf info-read", |f| {
        let own = solver(f)?;
        let room = f.stream.zeros([cholesky_room(f, &own)?])?;
        call(f, move |f| {
            cholesky(f, &own, &room)?;
            Ok(f.places.get([0])?.item()?)
        })
    }),
    ("cusolverDnSgetrf later", |f| {
        let (own, n, mut room) = (solver(f)?, SIDE as i32, 0);
        // Safety: a square matrix of so many rows; the result outlives the call.
        unsafe { sys::cusolverDnSgetrf_bufferSize(own.raw(), n, n, address(&f.a)?, n, &mut room) }.result()?;
        let room: Tensor<f32> = f.stream.zeros([room.max(1) as usize])?;
        call(f, move |f| {
            let (a, room, info) = (address(&f.a)?, address(&room)?, places(f)?);
            // Safety: the places of exchanged rows stand behind the first number, and are fewer than there is room for.
            Ok(unsafe { sys::cusolverDnSgetrf(own.raw(), n, n, a, n, room, info.add(1), info) }.result()?)
        })
    }),
    ("cusolverDnSgeqrf later", |f| {
        let (own, n, mut room) = (solver(f)?, SIDE as i32, 0);
        // Safety: as above.
        unsafe { sys::cusolverDnSgeqrf_bufferSize(own.raw(), n, n, address(&f.a)?, n, &mut room) }.result()?;
        let (len, room): (i32, Tensor<f32>) = (room, f.stream.zeros([room.max(1) as usize])?);
        call(f, move |f| {
            let (a, factors, room) = (address(&f.a)?, address(&f.c)?, address(&room)?);
            // Safety: there is room for as many factors as the matrix has rows.
            Ok(unsafe { sys::cusolverDnSgeqrf(own.raw(), n, n, a, n, factors, room, len, places(f)?) }.result()?)
        })
    }),
    ("cusolverDnSsyevd later", |f| {
        let (own, n, mut room) = (solver(f)?, SIDE as i32, 0);
        let (mode, part) =
            (sys::cusolverEigMode_t::CUSOLVER_EIG_MODE_VECTOR, sys::cublasFillMode_t::CUBLAS_FILL_MODE_LOWER);
        let (a, values) = (address(&f.a)?, address(&f.c)?);
        // Safety: as above.
        unsafe { sys::cusolverDnSsyevd_bufferSize(own.raw(), mode, part, n, a, n, values, &mut room) }.result()?;
        let (len, room): (i32, Tensor<f32>) = (room, f.stream.zeros([room.max(1) as usize])?);
        call(f, move |f| {
            let (a, values, room) = (address(&f.a)?, address(&f.c)?, address(&room)?);
            let info = places(f)?;
            // Safety: there is room for as many values as the matrix has rows.
            Ok(unsafe { sys::cusolverDnSsyevd(own.raw(), mode, part, n, a, n, values, room, len, info) }.result()?)
        })
    }),
];

type Solver = Handle<sys::cusolverDnHandle_t>;

const LOWER: sys::cublasFillMode_t = sys::cublasFillMode_t::CUBLAS_FILL_MODE_LOWER;

fn is_here() -> Result<()> {
    // Safety: it looks for the library, and calls nothing of it.
    found(unsafe { sys::is_culib_present() }, "cuSOLVER")
}

fn end(handle: sys::cusolverDnHandle_t) {
    // Safety: it is ended once, by its owner.
    _ = unsafe { result::dn_destroy(handle) };
}

/// A handle on the stream of the fixture.
fn solver(f: &Fixture) -> Result<Solver> {
    is_here()?;
    let handle = Solver::new(result::dn_create()?, end);
    // Safety: the stream lives as long as the process.
    unsafe { result::dn_set_stream(handle.raw(), f.raw.cast()) }?;
    Ok(handle)
}

/// Where whole numbers of 32 bits go: two in the place of one of the tensor.
fn places(f: &Fixture) -> Result<*mut i32> {
    Ok(address(&f.places)?.cast())
}

/// How many numbers the factorization needs beside the matrix.
fn cholesky_room(f: &Fixture, handle: &Solver) -> Result<usize> {
    let (mut room, n) = (0, SIDE as i32);
    // Safety: a square matrix of so many rows; the result outlives the call.
    unsafe { sys::cusolverDnSpotrf_bufferSize(handle.raw(), LOWER, n, address(&f.a)?, n, &mut room) }.result()?;
    Ok(room.max(1) as usize)
}

fn cholesky(f: &Fixture, handle: &Solver, room: &Tensor<f32>) -> Result<()> {
    let (n, a, info) = (SIDE as i32, address(&f.a)?, places(f)?);
    let (len, room) = (room.len() as i32, address(room)?);
    // Safety: a square matrix of so many rows, and the room that it needs.
    Ok(unsafe { sys::cusolverDnSpotrf(handle.raw(), LOWER, n, a, n, room, len, info) }.result()?)
}
