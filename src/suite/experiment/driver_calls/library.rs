//! The calls of CUDA's libraries, which stand on the driver's: the program in `book/peers-rs/libraries` measures them.
//!
//! Each is given a stream, as the others are. What is held is that stream or a non-blocking one.

use crate::calls::StreamRole;
use crate::experiment::prelude::*;

/// The calls by their names, behind which stands a way to make some of them. `first` is the first of a handle, `later` any other.
const CALLS: [&str; 53] = [
    "cublasCreate",
    "cublasDestroy",
    "cublasSetStream",
    "cublasSetWorkspace",
    "cublasSetPointerMode",
    "cublasSgemm first",
    "cublasSgemm later",
    "cublasSgemv later",
    "cublasSdot host-result",
    "cublasSdot device-result",
    "cublasSnrm2 host-result",
    "cublasIsamax host-result",
    "cublasSetVector",
    "cublasGetVector",
    "cublasLtCreate",
    "cublasLtDestroy",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmul first",
    "cublasLtMatmul later",
    "cusolverDnCreate",
    "cusolverDnDestroy",
    "cusolverDnSetStream",
    "cusolverDnSpotrf_bufferSize",
    "cusolverDnSpotrf first",
    "cusolverDnSpotrf later",
    "cusolverDnSpotrf info-read",
    "cusolverDnSgetrf later",
    "cusolverDnSgeqrf later",
    "cusolverDnSsyevd later",
    "cusparseCreate",
    "cusparseDestroy",
    "cusparseSetStream",
    "cusparseSpMV_bufferSize",
    "cusparseSpMV first",
    "cusparseSpMV later",
    "curandCreateGenerator",
    "curandDestroyGenerator",
    "curandSetStream",
    "curandSetPseudoRandomGeneratorSeed",
    "curandGenerateSeeds",
    "curandGenerateUniform first",
    "curandGenerateUniform later",
    "cufftPlan1d",
    "cufftDestroy",
    "cufftSetStream",
    "cufftExecC2C first",
    "cufftExecC2C later",
    "ncclGetUniqueId",
    "ncclCommInitRank",
    "ncclCommInitAll",
    "ncclCommDestroy",
    "ncclAllReduce first",
    "ncclAllReduce later",
];

/// Why a row has no meaning here.
const REASON: &str = "it is a call of a library";

/// The rows of all of them.
pub(super) fn group() -> Group {
    let named = |name: &str| match name.split_once(' ') {
        Some((call, way)) => vec![("call", call.into()), ("way", way.into())],
        None => vec![("call", name.into())],
    };
    let mut group = Group::of("Libraries", []);
    for name in CALLS {
        let call: Vec<(&str, Parameter)> = named(name);
        for held in [StreamRole::Given, StreamRole::NonBlocking] {
            let parameters = call.iter().cloned().chain([("held", held.name().into())]);
            group = group.with_parameters(parameters).foreign(
                "driver-calls.library.blocks",
                "Waited for the gate",
                Unit::Ratio,
                REASON,
            );
        }
        group = group
            .with_parameters(call)
            .foreign_time("driver-calls.library.ready", "Time of the call, nothing pending", REASON)
            .foreign_time("driver-calls.library.behind", "Time of the call behind work", REASON);
    }
    group.build()
}
