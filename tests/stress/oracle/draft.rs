//! Kinds of steps, drawn by their weights.

/// Kinds of steps by their weights.
const KINDS: [(u8, Draft); 40] = [
    (2, Draft::NewStream),
    (6, Draft::Full),
    (8, Draft::Upload),
    (6, Draft::Affine),
    (8, Draft::AffineInPlace),
    (8, Draft::Elementwise),
    (5, Draft::Matmul),
    (3, Draft::Greater),
    (4, Draft::Sum),
    (4, Draft::Gather),
    (2, Draft::Stack),
    (5, Draft::Assign),
    (3, Draft::View),
    (2, Draft::Share),
    (4, Draft::Spin),
    (9, Draft::Drop),
    (7, Draft::Read),
    (3, Draft::Item),
    (2, Draft::Any),
    (3, Draft::Nonzero),
    (2, Draft::NewBuffer),
    (4, Draft::CopyTo),
    (4, Draft::CopyFrom),
    (3, Draft::ReadBuffer),
    (3, Draft::WriteBuffer),
    (2, Draft::Synchronize),
    (1, Draft::SynchronizeDevice),
    (2, Draft::SynchronizeEvent),
    (5, Draft::Hold),
    (4, Draft::Capture),
    (6, Draft::Launch),
    (1, Draft::FailedStream),
    (2, Draft::Leave),
    (4, Draft::Query),
    (1, Draft::Trim),
    (1, Draft::Record),
    (2, Draft::Inject),
    (2, Draft::Together),
    (1, Draft::Fill),
    (1, Draft::Forget),
];

/// A step to be.
#[derive(Clone, Copy)]
pub(super) enum Draft {
    NewStream,
    Full,
    Upload,
    Affine,
    AffineInPlace,
    Elementwise,
    Matmul,
    Greater,
    Sum,
    Gather,
    Stack,
    Assign,
    View,
    Share,
    Spin,
    Drop,
    Read,
    Item,
    Any,
    Nonzero,
    NewBuffer,
    CopyTo,
    CopyFrom,
    ReadBuffer,
    WriteBuffer,
    Synchronize,
    SynchronizeDevice,
    SynchronizeEvent,
    Hold,
    Capture,
    Launch,
    FailedStream,
    Leave,
    Query,
    Trim,
    Record,
    Inject,
    Together,
    Fill,
    Forget,
}

pub(super) fn draft(kind: u8) -> Draft {
    let total: u32 = KINDS.iter().map(|(weight, _)| u32::from(*weight)).sum();
    let mut left = u32::from(kind) * total / 256;
    for (weight, draft) in KINDS {
        match left.checked_sub(weight.into()) {
            Some(rest) => left = rest,
            None => return draft,
        }
    }
    Draft::Full
}
