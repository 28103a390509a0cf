"""What is concluded from a profiler's trace, on traces written by hand; and the kernel that NVRTC compiles."""

import os
import sys
import unittest
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from pytorch_system import nvrtc, spin  # noqa: E402
from pytorch_system.experiments import implementation, kernels  # noqa: E402
from pytorch_system.experiments.sync_points import idle_share  # noqa: E402
from pytorch_system.recording import NotRecorded, trials_of, union  # noqa: E402


def event(kind, name, start, duration, tid=1, **arguments):
    return {"ph": "X", "cat": kind, "name": name, "pid": 9, "tid": tid, "ts": start, "dur": duration, "args": arguments}


def trial(*events):
    mark = event("user_annotation", "trial 1", 0, 1000)
    return trials_of([mark, {"ph": "M", "name": "process_name"}, *events])[1]


def call(name, start, duration=1, correlation=None, tid=1):
    return event("cuda_runtime", name, start, duration, tid, correlation=correlation)


def work(kind, start, duration, correlation, stream=7, name="w"):
    return event(kind, name, start, duration, 70, correlation=correlation, stream=stream)


class Trials(unittest.TestCase):
    def test_calls_of_other_threads_and_other_trials_are_not_of_the_trial(self):
        made = trial(call("cudaLaunchKernel", 10, correlation=1), call("cudaLaunchKernel", 20, correlation=2, tid=2),
                     call("cudaLaunchKernel", 2000, correlation=3), work("kernel", 1500, 5, 1), work("kernel", 30, 5, 2))
        self.assertEqual([one.correlation for one in made.calls], [1])
        # Work of the trial counts wherever it runs.
        self.assertEqual([span.correlation for span in made.work], [1])

    def test_a_trace_without_calls_is_not_judged(self):
        with self.assertRaisesRegex(NotRecorded, "recorded no call of CUDA"):
            trial()

    def test_overlapping_spans_count_once(self):
        self.assertEqual(union([(0, 2), (1, 3), (5, 6), (5, 5.5)]), 4)


class Conclusions(unittest.TestCase):
    def test_a_device_synchronize_by_the_stream_call_is_seen(self):
        self.assertEqual(implementation.stream_call(trial(call("cudaStreamSynchronize", 1))), 1.0)
        self.assertEqual(implementation.stream_call(trial(call("cudaDeviceSynchronize", 1))), 0.0)
        with self.assertRaises(NotRecorded):
            implementation.stream_call(trial(call("cudaMalloc", 1)))

    def test_a_count_is_read_where_a_copy_to_the_host_is_waited_for(self):
        copy = [call("cudaMemcpyAsync", 10, correlation=1), work("gpu_memcpy", 20, 1, 1, name="Memcpy DtoH (Device -> Pinned)")]
        self.assertEqual(implementation.count_read(trial(*copy)), 0.0)
        self.assertEqual(implementation.count_read(trial(call("cudaStreamSynchronize", 1), *copy)), 0.0)
        self.assertEqual(implementation.count_read(trial(*copy, call("cudaStreamSynchronize", 30))), 1.0)
        up = [copy[0], work("gpu_memcpy", 20, 1, 1, name="Memcpy HtoD (Pinned -> Device)")]
        self.assertEqual(implementation.count_read(trial(*up, call("cudaStreamSynchronize", 30))), 0.0)

    def test_a_copy_on_another_stream_than_the_kernel_is_seen(self):
        def copied(stream):
            return trial(call("cudaMemcpyAsync", 1, correlation=1), work("gpu_memcpy", 2, 1, 1, stream),
                         call("cudaLaunchKernel", 3, correlation=2), work("kernel", 4, 1, 2, 7))

        self.assertEqual([implementation.other_stream(copied(stream)) for stream in (7, 13)], [0.0, 1.0])

    def test_kernels_that_start_out_of_order_are_seen(self):
        def started(first, second):
            return trial(call("cudaLaunchKernel", 1, correlation=1), call("cudaLaunchKernel", 2, correlation=2),
                         work("kernel", first, 1, 1), work("kernel", second, 1, 2))

        self.assertEqual([implementation.starts_in_order(started(*pair)) for pair in ((5, 9), (9, 5))], [1.0, 0.0])

    def test_a_wait_is_what_a_synchronize_takes_beyond_one_with_nothing_pending(self):
        clock, pending = [0.0], [False]

        def synchronize(device=None):
            clock[0] += 5.0 if pending[0] else 1.0
            pending[0] = False

        def launch(*_, **__):
            pending[0] = True

        torch = SimpleNamespace(cuda=SimpleNamespace(synchronize=synchronize, device_count=lambda: 2), randn=launch, mm=launch,
                                device=lambda *_: "other", zeros=launch)
        lab = SimpleNamespace(torch=torch, device=SimpleNamespace(index=0), synchronize=synchronize)
        case = implementation.waiting(lab, {"device": "same"})["implementation.idle-device.waiting"]
        with mock.patch.object(implementation.time, "perf_counter", lambda: clock[0]):
            self.assertEqual(case.measure(), 4.0 * implementation.ITERS)

    def test_a_device_idles_between_its_kernels(self):
        made = trial(call("cudaLaunchKernel", 0, correlation=1), call("cudaLaunchKernel", 1, correlation=2),
                     work("kernel", 10, 30, 1), work("kernel", 80, 30, 2))
        self.assertAlmostEqual(idle_share(made), 0.4)

    def test_versioned_names_of_calls_count(self):
        self.assertTrue(trial(call("cudaLaunchKernel_v7000", 1)).called("cudaLaunchKernel"))


class Kernel(unittest.TestCase):
    def test_the_kernels_compile_where_nvrtc_is_installed(self):
        try:
            library = nvrtc.load(nvrtc.candidates("/nowhere/torch"))
        except nvrtc.CompileError:
            self.skipTest("NVRTC is not on the loader's path")
        self.assertIn(b"spin", nvrtc.compile_cubin(library, spin.SOURCE, "sm_90").raw)
        with open(kernels.PATH, encoding="utf-8") as file:
            self.assertIn(b"transpose", nvrtc.compile_cubin(library, file.read(), "sm_90").raw)
        with self.assertRaisesRegex(nvrtc.CompileError, "nvrtcCompileProgram failed"):
            nvrtc.compile_cubin(library, "not CUDA", "sm_90")

    def test_without_nvrtc_the_error_says_where_it_was_looked_for(self):
        with self.assertRaisesRegex(nvrtc.CompileError, "no libnvrtc.so beside PyTorch"):
            nvrtc.load(["/nowhere/libnvrtc.so"])


if __name__ == "__main__":
    unittest.main()
