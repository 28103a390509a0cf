//! Reads of a result that is pending, and of one that is ready.

use std::hint::black_box;

use super::{SyncPoints, dtype, operands, row, size};
use crate::device::Float;
use crate::error::DeviceError;
use crate::experiment::bench::{Bench, integer, null_device, parameters, print_to};
use crate::measure::{Case, host_time};
use crate::tensor::Tensor;

impl SyncPoints {
    /// One element of a large product, read and printed.
    pub(super) fn scalar_reads<T: Float>(&self, bench: &mut Bench) {
        let ids = ["item.pending", "print.pending", "item.ready", "item.value"].map(row);
        let [item, print, ready, value] = ids;
        let n = self.big.get();
        bench.group(&ids, &parameters([dtype::<T>(), size(n)]), |device| {
            let (_, x, w) = operands::<T>(device, n)?;
            let product = move || x.matmul(&w)?.get([0, 0]);
            let mut null = null_device()?;
            let (first, second, third, fourth) = (product.clone(), product.clone(), product.clone(), product);
            Ok(vec![
                Case::new(item, move || {
                    let y = first()?;
                    Ok(host_time(|| y.item())?.1)
                }),
                Case::new(print, move || {
                    let y = second()?;
                    Ok(host_time(|| print_to(&mut null, &y))?.1)
                }),
                Case::new(ready, move || {
                    let y = third()?;
                    y.stream().device().synchronize()?;
                    Ok(host_time(|| y.item())?.1)
                }),
                Case::new(value, move || Ok(f64::from(fourth()?.item()?.to_f32()))),
            ])
        });
    }

    /// What else reads values: a copy, a host array, a condition, indices of the host.
    pub(super) fn other_reads<T: Float>(&self, bench: &mut Bench) {
        type Read<T> = fn(&Tensor<T>) -> Result<(), DeviceError>;
        let reads: [(&'static str, &'static str, Read<T>); 4] = [
            ("other.copy.pending", "other.copy.ready", |y| y.to_vec().map(|values| drop(black_box(values)))),
            ("other.array.pending", "other.array.ready", |y| y.to_array().map(|values| drop(black_box(values)))),
            ("other.any.pending", "other.any.ready", |y| {
                if y.gt(0.0)?.any()? {
                    black_box(());
                }
                Ok(())
            }),
            ("other.index.pending", "other.index.ready", |y| {
                y.index_select(&[0, 1, 2]).map(|rows| drop(black_box(rows)))
            }),
        ];
        let (n, behind) = (self.small.get().max(3), self.big.get());
        let parameters = parameters([dtype::<T>(), size(n), ("behind", integer(behind))]);
        bench.group(&reads.map(|(pending, ..)| row(pending)), &parameters, |device| {
            let (stream, x, w) = operands::<T>(device, n)?;
            let large: (Tensor<T>, Tensor<T>) = (stream.normal([behind, behind])?, stream.normal([behind, behind])?);
            let case = |(pending, _, read): (_, _, Read<T>)| {
                let (x, w, large) = (x.clone(), w.clone(), large.clone());
                Case::new(row(pending), move || {
                    black_box(large.0.matmul(&large.1)?);
                    let y = x.matmul(&w)?;
                    Ok(host_time(|| read(&y))?.1)
                })
            };
            Ok(reads.map(case).into())
        });
        // By themselves: what a large product leaves behind in the host's caches is not theirs.
        bench.group(&reads.map(|(_, ready, _)| row(ready)), &parameters, |device| {
            let (_, x, w) = operands::<T>(device, n)?;
            let case = |(_, ready, read): (_, _, Read<T>)| {
                let (x, w) = (x.clone(), w.clone());
                Case::new(row(ready), move || {
                    let y = x.matmul(&w)?;
                    y.stream().device().synchronize()?;
                    Ok(host_time(|| read(&y))?.1)
                })
            };
            Ok(reads.map(case).into())
        });
    }
}
