//! Times operations at given sizes, for `book/peers/sweep.py`, which times the same in PyTorch and compares the two.
//!
//! A process that answers lines: `prepare OPERATION TYPE SIZES` makes the operands and answers `ready`; `sample RUNS` answers
//! with the seconds of a run. An error is answered as `error` with its text. The sizes are numbers with commas between
//! them. `sweep DEVICE` takes the device, `cuda:0` unless it is given.
//!
//! An operation that only enqueues is timed by a loop of it that ends with one synchronization; one that waits, by itself.

use std::io::{BufRead, Write};
use std::time::Instant;

use half::{bf16, f16};
use syncscope::device::{Device, Float, HostKind, MatmulPrecision, Stream};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// One run of an operation.
type Run = Box<dyn FnMut() -> std::result::Result<(), DeviceError>>;

fn main() -> Result<()> {
    let device = Device::open(&std::env::args().nth(1).unwrap_or_else(|| "cuda:0".to_owned()))?;
    let stream = device.stream()?;
    let mut run: Option<Run> = None;
    for line in std::io::stdin().lock().lines() {
        let answer = answer(&stream, &line?, &mut run).unwrap_or_else(|error| format!("error {error}"));
        println!("{}", answer.replace('\n', " "));
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn answer(stream: &Stream, line: &str, run: &mut Option<Run>) -> Result<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match *words {
        ["prepare", operation, dtype, sizes] => {
            // The operands of the last operation make room first.
            *run = None;
            stream.synchronize()?;
            let sizes = sizes.split(',').map(str::parse).collect::<std::result::Result<Vec<usize>, _>>()?;
            *run = Some(prepare(stream, operation, dtype, &sizes)?);
            Ok("ready".to_owned())
        }
        ["sample", runs] => {
            let (run, runs) = (run.as_mut().ok_or("nothing is prepared")?, runs.parse::<u32>()?);
            // The GPU turns from the other process to this one before the time begins.
            run()?;
            stream.synchronize()?;
            let start = Instant::now();
            for _ in 0..runs {
                run()?;
            }
            stream.synchronize()?;
            Ok(format!("{:e}", start.elapsed().as_secs_f64() / f64::from(runs)))
        }
        _ => Err(format!("`{line}` is no command").into()),
    }
}

fn prepare(stream: &Stream, operation: &str, dtype: &str, sizes: &[usize]) -> Result<Run> {
    match (dtype, operation) {
        ("fp16", _) => of_type::<f16>(stream, operation, sizes),
        ("bf16", _) => of_type::<bf16>(stream, operation, sizes),
        ("fp32", _) => of_type::<f32>(stream, operation, sizes),
        ("tf32", "matmul") => {
            let [a, b] = factors::<f32>(stream, sizes)?;
            Ok(Box::new(move || a.matmul_in(&b, MatmulPrecision::Tf32).map(drop)))
        }
        ("u8", "nonzero") => {
            let x = stream.normal::<f32>(sizes)?.gt(1.0)?;
            Ok(Box::new(move || x.nonzero().map(drop)))
        }
        ("u8", "any") => {
            let x = stream.zeros::<u8>(sizes)?;
            Ok(Box::new(move || x.any().map(drop)))
        }
        _ => Err(format!("there is no {operation} of {dtype}").into()),
    }
}

fn of_type<T: Float>(stream: &Stream, operation: &str, sizes: &[usize]) -> Result<Run> {
    let (stream, shape) = (stream.clone(), sizes.to_vec());
    let normal = || stream.normal::<T>(shape.clone());
    Ok(match operation {
        "full" => Box::new(move || stream.full::<T>(shape.clone(), 3.0).map(drop)),
        "normal" => Box::new(move || stream.normal::<T>(shape.clone()).map(drop)),
        "matmul" => {
            let [a, b] = factors::<T>(&stream, sizes)?;
            Box::new(move || a.matmul(&b).map(drop))
        }
        "affine" => unary(normal()?, |x| x.affine(2.0, 1.0).map(drop)),
        "affine_in_place" => unary(normal()?, |x| x.affine_in_place(1.0, 0.0)),
        "add_scalar" => unary(normal()?, |x| x.add_scalar(2.0).map(drop)),
        "multiply_scalar" => unary(normal()?, |x| x.multiply_scalar(2.0).map(drop)),
        "add" => binary(normal()?, normal()?, |x, y| x.add(y).map(drop)),
        "subtract" => binary(normal()?, normal()?, |x, y| x.subtract(y).map(drop)),
        "multiply" => binary(normal()?, normal()?, |x, y| x.multiply(y).map(drop)),
        "assign" => binary(normal()?, normal()?, |x, y| x.assign(y)),
        "stack" => {
            let parts = [normal()?, normal()?, normal()?];
            Box::new(move || Tensor::stack(&parts).map(drop))
        }
        "gt" => unary(normal()?, |x| x.gt(0.0).map(drop)),
        "sum" => unary(normal()?, |x| x.sum().map(drop)),
        "mean" => unary(normal()?, |x| x.mean().map(drop)),
        "any" => unary(stream.zeros::<T>(shape)?, |x| x.any().map(drop)),
        "nonzero" => unary(normal()?, |x| x.nonzero().map(drop)),
        // Until the positions are written, not only counted.
        "nonzero_done" => unary(normal()?, |x| x.nonzero().and_then(|found| found.stream().synchronize())),
        "item" => unary(normal()?.reshape([sizes.iter().product()])?.get([0])?, |x| x.item().map(drop)),
        "to_vec" => unary(normal()?, |x| x.to_vec().map(drop)),
        "to_array" => unary(normal()?, |x| x.to_array().map(drop)),
        "tensor" => {
            let values = normal()?.to_vec()?;
            Box::new(move || stream.tensor(&values, shape.clone()).map(drop))
        }
        "copy_from" | "copy_to" => {
            let x = normal()?;
            let mut buffer = stream.device().host_buffer::<T>(HostKind::Pinned, x.len())?;
            match operation {
                "copy_from" => Box::new(move || x.copy_from(&buffer)),
                _ => Box::new(move || x.copy_to(&mut buffer)),
            }
        }
        "gather" | "index_select" => {
            let &[height, width, count] = sizes else { return Err("needs a height, a width and a count".into()) };
            let x = stream.normal::<T>([height, width])?;
            let rows: Vec<usize> = (0..count).map(|i| i * 7919 % height).collect();
            if operation == "index_select" {
                return Ok(Box::new(move || x.index_select(&rows).map(drop)));
            }
            let rows: Vec<i64> = rows.into_iter().map(|row| row as i64).collect();
            let rows = stream.tensor(&rows, [count])?;
            Box::new(move || x.gather(&rows).map(drop))
        }
        "graph" => {
            let x = normal()?;
            let (_, graph) = stream.capture(|| (0..100).try_for_each(|_| x.affine_in_place(1.0, 0.0)))?;
            Box::new(move || graph.launch())
        }
        _ => return Err(format!("there is no operation {operation}").into()),
    })
}

/// The factors of a matrix multiplication of sizes m, k, n.
fn factors<T: Float>(stream: &Stream, sizes: &[usize]) -> Result<[Tensor<T>; 2]> {
    let &[m, k, n] = sizes else { return Err("a matrix multiplication needs three sizes".into()) };
    Ok([stream.normal([m, k])?, stream.normal([k, n])?])
}

fn unary<T: Float>(x: Tensor<T>, run: fn(&Tensor<T>) -> std::result::Result<(), DeviceError>) -> Run {
    Box::new(move || run(&x))
}

fn binary<T: Float>(
    x: Tensor<T>,
    y: Tensor<T>,
    run: fn(&Tensor<T>, &Tensor<T>) -> std::result::Result<(), DeviceError>,
) -> Run {
    Box::new(move || run(&x, &y))
}
