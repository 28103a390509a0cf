//! A matrix multiplication prepared for one shape: descriptors and algorithm, ready to enqueue.
//!
//! The vendor's library takes some microseconds to turn a multiplication into its launch, each time. So one whose operands
//! lie where they lay before is kept as a graph of its own, which is launched in one call: the first time it is enqueued by
//! the library, the second time its graph is made, and from then on launched. Making one can wait for the GPU: the driver may
//! take more memory for graphs, and a recording has a wait of about 5 µs in each, also with nothing pending (H100 and H200, CUDA
//! 13.0). Behind a closed gate there may be no room for a graph: then it is made at a later time.
//!
//! A graph belongs to one stream: launched on two, it would order them, as it cannot run beside itself.

use std::sync::{Arc, Mutex, Weak};

use crate::device::cuda::driver::blas::{Algorithm, Descriptors};
use crate::device::cuda::driver::{Executable, PoolSpan};
use crate::device::cuda::gpu::lock;
use crate::device::cuda::stream::guard::{Scratch, StreamGuard, StreamInner, WORKSPACE_BYTES};
use crate::device::engine::Result;

/// How many places a plan remembers.
const PLACES: usize = 16;

/// A matrix multiplication ready to enqueue.
pub(super) struct MatmulPlan {
    descriptors: Descriptors,
    algorithm: Algorithm,
    /// Where operands lay, the latest last.
    places: Mutex<Vec<(Place, Launch)>>,
}

/// The stream, the operands, and the workspace if there is one.
struct Place {
    stream: Weak<StreamInner>,
    operands: [PoolSpan; 3],
    workspace: Option<PoolSpan>,
}

/// How a multiplication at one place is enqueued.
#[derive(Clone)]
enum Launch {
    /// By the library; a graph next time.
    Once,
    /// By the library, as it cannot be captured.
    Library,
    Graph(Arc<Executable>),
}

impl MatmulPlan {
    pub(super) fn new(descriptors: Descriptors, algorithm: Algorithm) -> Self {
        Self { descriptors, algorithm, places: Mutex::default() }
    }

    /// Enqueues the multiplication; `operands` are a, b and out of the shape that the plan was made for, of its alignments.
    #[inline]
    pub(super) fn enqueue(&self, guard: &StreamGuard<'_>, operands: [PoolSpan; 3]) -> Result<()> {
        let workspace = match self.algorithm.workspace() {
            0 => None,
            _ => Some(guard.scratch(Scratch::Workspace, WORKSPACE_BYTES)?),
        };
        let by_library = || guard.multiply(&self.descriptors, &self.algorithm, workspace, operands);
        if guard.is_capturing() {
            return by_library();
        }
        match self.launch_at(guard, operands, workspace) {
            Launch::Graph(graph) => guard.launch_graph(&graph),
            Launch::Once | Launch::Library => by_library(),
        }
    }

    /// How to enqueue at a place. Nothing is asked of the driver with the lock, as it may block.
    fn launch_at(&self, guard: &StreamGuard<'_>, operands: [PoolSpan; 3], workspace: Option<PoolSpan>) -> Launch {
        let same = |place: &Place| {
            place.operands == operands
                && place.workspace == workspace
                && std::ptr::eq(place.stream.as_ptr(), Arc::as_ptr(guard.stream()))
        };
        let mut places = lock(&self.places);
        let Some((_, launch)) = places.iter_mut().rfind(|(place, _)| same(place)) else {
            let gone = (places.len() == PLACES).then(|| places.remove(0));
            places.push((Place { stream: Arc::downgrade(guard.stream()), operands, workspace }, Launch::Once));
            drop(places);
            // A graph is destroyed without the lock.
            drop(gone);
            return Launch::Once;
        };
        if !matches!(launch, Launch::Once) {
            return launch.clone();
        }
        drop(places);
        let captured = guard.captured_apart(|apart| {
            let blas = guard.stream().device.gpu.blas()?;
            apart.multiply(blas, &self.descriptors, &self.algorithm, workspace, operands)
        });
        let made = match captured {
            Ok(graph) => Launch::Graph(Arc::new(graph)),
            Err(_) if guard.stream().device.gpu.is_held() => return Launch::Once,
            Err(_) => Launch::Library,
        };
        // Only this thread has the guard of the stream. The place may have had to go.
        if let Some((_, launch)) = lock(&self.places).iter_mut().rfind(|(place, _)| same(place)) {
            *launch = made.clone();
        }
        made
    }
}
