//! The scenarios of `overlap`: the random tensors, the additions, the search for elements that are not zero, and both
//! loops of copies and kernels.

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, StandardNormal};

use super::{Overlap, double_buffer};
use crate::experiment::prelude::*;

pub(super) fn record(overlap: &Overlap, recorder: &mut TraceRecorder) {
    let (draws, elements) = (overlap.draws.get(), overlap.elements.get());
    let (adds, scales) = (overlap.adds.get(), overlap.scales.get());
    recorder.record("overlap.execution.host", [("elements", draws.into())], |device| {
        room_for::<f32>(draws)?;
        let (device, mut random) = (device.clone(), Xoshiro256PlusPlus::seed_from_u64(0));
        Ok(Box::new(move || {
            for _ in 0..3 {
                let mut normal = || -> Vec<f32> { (0..draws).map(|_| StandardNormal.sample(&mut random)).collect() };
                black_box(device.host_work("random tensor", &mut normal));
            }
            Ok(())
        }))
    });
    recorder.record("overlap.execution.complete", [("elements", draws.into())], |device| {
        let stream = device.stream()?;
        Ok(Box::new(move || {
            let tensors = [stream.normal::<f32>([draws])?, stream.normal([draws])?, stream.normal([draws])?];
            stream.device().synchronize()?;
            drop(black_box(tensors));
            Ok(())
        }))
    });
    recorder.record("overlap.finish.complete", [("elements", elements.into()), ("adds", adds.into())], |device| {
        let stream = device.stream()?;
        let x = stream.normal::<f32>([elements])?;
        Ok(Box::new(move || {
            (0..adds).try_for_each(|_| x.add_scalar(1.0).map(|y| drop(black_box(y))))?;
            stream.device().synchronize()
        }))
    });
    recorder.record("overlap.nonzero.whole", [("elements", elements.into()), ("scales", scales.into())], |device| {
        let x = device.stream()?.normal::<f32>([elements])?;
        Ok(Box::new(move || {
            let z = (0..scales).try_fold(x.clone(), |z, _| z.multiply_scalar(1.000_001))?;
            z.nonzero().map(|positions| drop(black_box(positions)))
        }))
    });
    double_buffer::record(recorder, elements, overlap.steps.get());
}
