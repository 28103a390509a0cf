//! cuRAND and cuFFT.

use cudarc::cufft::{result as fft_result, sys as fft};
use cudarc::curand::{result, sys};
use syncscope_peer::{Calls, Result};

use crate::handle::Handle;
use crate::{Fixture, SIDE, address, call, dropped, found, prepared};

pub(crate) const CALLS: Calls<Fixture> = &[
    ("curandCreateGenerator", |f| {
        has_rand()?;
        call(f, |_| Ok(Generator::new(result::create_generator()?, end)))
    }),
    ("curandDestroyGenerator", |f| dropped(f, generator)),
    ("curandSetStream", |f| {
        let own = generator(f)?;
        // Safety: both live as long as the call.
        call(f, move |f| Ok(unsafe { result::set_stream(own.raw(), f.raw.cast()) }?))
    }),
    ("curandSetPseudoRandomGeneratorSeed", |f| {
        let own = generator(f)?;
        // Safety: the generator is alive.
        call(f, move |_| Ok(unsafe { result::set_seed(own.raw(), 7) }?))
    }),
    ("curandGenerateSeeds", |f| {
        // Safety: as above.
        prepared(f, generator, |_, own| Ok(unsafe { sys::curandGenerateSeeds(own.raw()) }.result().map(|()| own)?))
    }),
    ("curandGenerateUniform first", |f| prepared(f, generator, |f, own| random(f, &own).map(|()| own))),
    ("curandGenerateUniform later", |f| {
        let own = generator(f)?;
        call(f, move |f| random(f, &own))
    }),
    ("cufftPlan1d", |f| {
        has_fft()?;
        call(f, |_| planned())
    }),
    ("cufftDestroy", |f| dropped(f, plan)),
    ("cufftSetStream", |f| {
        let own = plan(f)?;
        // Safety: both live as long as the call.
        call(f, move |f| Ok(unsafe { fft_result::set_stream(own.raw(), f.raw.cast()) }?))
    }),
    ("cufftExecC2C first", |f| prepared(f, plan, |f, own| transform(f, &own).map(|()| own))),
    ("cufftExecC2C later", |f| {
        let own = plan(f)?;
        call(f, move |f| transform(f, &own))
    }),
];

/// `CUFFT_FORWARD`.
const FORWARD: i32 = -1;

type Generator = Handle<sys::curandGenerator_t>;
type Plan = Handle<fft::cufftHandle>;

fn has_rand() -> Result<()> {
    // Safety: it looks for the library, and calls nothing of it.
    found(unsafe { sys::is_culib_present() }, "cuRAND")
}

fn has_fft() -> Result<()> {
    // Safety: as above.
    found(unsafe { fft::is_culib_present() }, "cuFFT")
}

fn end(generator: sys::curandGenerator_t) {
    // Safety: it is ended once, by its owner.
    _ = unsafe { result::destroy_generator(generator) };
}

/// A generator on the stream of the fixture.
fn generator(f: &Fixture) -> Result<Generator> {
    has_rand()?;
    let generator = Generator::new(result::create_generator()?, end);
    // Safety: the stream lives as long as the process.
    unsafe { result::set_stream(generator.raw(), f.raw.cast()) }?;
    Ok(generator)
}

fn random(f: &Fixture, generator: &Generator) -> Result<()> {
    // Safety: there is room for so many numbers.
    Ok(unsafe { result::generate::uniform_f32(generator.raw(), address(&f.c)?, SIDE * SIDE) }?)
}

/// The plan of transforms of each row of a matrix.
fn planned() -> Result<Plan> {
    let (len, batch) = (SIDE as i32, SIDE as i32 / 2);
    let plan = fft_result::plan_1d(len, fft::cufftType::CUFFT_C2C, batch)?;
    // Safety: it is ended once, by its owner.
    Ok(Plan::new(plan, |plan| _ = unsafe { fft_result::destroy(plan) }))
}

/// A plan on the stream of the fixture.
fn plan(f: &Fixture) -> Result<Plan> {
    has_fft()?;
    let plan = planned()?;
    // Safety: the stream lives as long as the process.
    unsafe { fft_result::set_stream(plan.raw(), f.raw.cast()) }?;
    Ok(plan)
}

fn transform(f: &Fixture, plan: &Plan) -> Result<()> {
    let (from, to) = (address(&f.a)?.cast(), address(&f.c)?.cast());
    // Safety: each has half as many complex numbers as it has numbers: those of the plan.
    Ok(unsafe { fft_result::exec_c2c(plan.raw(), from, to, FORWARD) }?)
}
