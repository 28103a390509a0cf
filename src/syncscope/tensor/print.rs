//! Printing: what `print` shows of a tensor. A synchronization point: the elements have to be read.

use std::fmt;

use super::Tensor;
use crate::device::Element;

/// Tensors of more elements than this are summarised.
const WHOLE: usize = 1000;
/// How many elements stand at each end of a summarised dimension.
const EDGE: usize = 3;

/// Synchronization point: nested brackets as the documents print them, `[[3.0, 3.0]]`; a scalar without. Of a dimension of a large
/// tensor the first and last three are shown. A failed read prints the reason in the place of the elements.
impl<T: Element> fmt::Display for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The place that prints is not known: no formatter tells it.
        let _scope = self.stream.scope("Display", None);
        match self.to_vec() {
            Ok(values) if values.is_empty() => f.write_str("[]"),
            Ok(values) => dimension(f, &values, &self.shape, values.len() > WHOLE),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}

fn dimension<T: Element>(f: &mut fmt::Formatter<'_>, values: &[T], shape: &[usize], short: bool) -> fmt::Result {
    let Some((&rows, inner)) = shape.split_first() else {
        return values.first().map_or(Ok(()), |value| write!(f, "{value:?}"));
    };
    let width: usize = inner.iter().product();
    f.write_str("[")?;
    for row in 0..rows {
        let skipped = short && rows > 2 * EDGE && (EDGE..rows - EDGE).contains(&row);
        if skipped && row > EDGE {
            continue;
        }
        if row > 0 {
            f.write_str(if inner.is_empty() { ", " } else { ",\n " })?;
        }
        if skipped {
            f.write_str("…")?;
        } else {
            dimension(f, &values[row * width..(row + 1) * width], inner, short)?;
        }
    }
    f.write_str("]")
}
