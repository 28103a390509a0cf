//! The scenes of `overlap`: the draws, the additions, the search for elements that are not zero, and both loops of
//! copies and kernels.

use std::hint::black_box;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, StandardNormal};

use super::{Overlap, double_buffer};
use crate::experiment::Stage;
use crate::experiment::bench::{integer, parameters};

pub(super) fn play(overlap: &Overlap, stage: &mut Stage) {
    let (draws, elements) = (overlap.draws.get(), overlap.elements.get());
    let (adds, scales) = (overlap.adds.get(), overlap.scales.get());
    let drawn = parameters([("elements", integer(draws))]);
    stage.play("overlap.execution.host", &drawn, |device| {
        let (device, mut random) = (device.clone(), StdRng::seed_from_u64(0));
        Ok(Box::new(move || {
            for _ in 0..3 {
                let mut draw = || -> Vec<f32> { (0..draws).map(|_| StandardNormal.sample(&mut random)).collect() };
                black_box(device.host_work("draw", &mut draw));
            }
            Ok(())
        }))
    });
    stage.play("overlap.execution.complete", &drawn, |device| {
        let stream = device.stream()?;
        Ok(Box::new(move || {
            let drawn = [stream.normal::<f32>([draws])?, stream.normal([draws])?, stream.normal([draws])?];
            stream.device().synchronize()?;
            drop(black_box(drawn));
            Ok(())
        }))
    });
    let added = parameters([("elements", integer(elements)), ("adds", integer(adds))]);
    stage.play("overlap.finish.complete", &added, |device| {
        let stream = device.stream()?;
        let x = stream.normal::<f32>([elements])?;
        Ok(Box::new(move || {
            (0..adds).try_for_each(|_| x.add_scalar(1.0).map(|y| drop(black_box(y))))?;
            stream.device().synchronize()
        }))
    });
    let scaled = parameters([("elements", integer(elements)), ("scales", integer(scales))]);
    stage.play("overlap.nonzero.whole", &scaled, |device| {
        let x = device.stream()?.normal::<f32>([elements])?;
        Ok(Box::new(move || {
            let z = (0..scales).try_fold(x.clone(), |z, _| z.multiply_scalar(1.000_001))?;
            z.nonzero().map(|positions| drop(black_box(positions)))
        }))
    });
    double_buffer::play(stage, elements, overlap.steps.get());
}
