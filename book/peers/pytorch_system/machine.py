"""Facts of the machine, by which an answer is held against a run of `report`."""

import importlib.util
import platform
import subprocess


def versions(torch):
    named = [
        ["PyTorch", torch.__version__],
        ["CUDA", torch.version.cuda or "none"],
        ["Python", platform.python_version()],
    ]
    if importlib.util.find_spec("numpy"):
        import numpy

        named.append(["NumPy", numpy.__version__])
    return [*named, ["threads of PyTorch on the host", str(torch.get_num_threads())]]


def describe(torch, device):
    properties = torch.cuda.get_device_properties(device)
    uuid = getattr(properties, "uuid", None)
    return {
        "model": properties.name,
        "fingerprint": fingerprint(str(uuid)) if uuid is not None else None,
        "driver": driver_version(),
        "cpu": processor(),
    }


def fingerprint(uuid):
    """Distinguishes the GPUs of one machine without a serial number: FNV-1a, 32 bits, of the UUID as text."""
    code = 0x811C9DC5
    for byte in uuid.lower().removeprefix("gpu-").encode():
        code = (code ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{code:08x}"


def driver_version():
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        output = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return None
    return output[0] if output else None


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), None)
    except OSError:
        return None
