# SPDX-License-Identifier: Apache-2.0
"""env: what it prints makes a program record itself, in every format; output names; doctor's verdicts."""
import json
import os
import shlex
import shutil
import socket
import subprocess

import lib_record as r


def laggard(*args, env=None, cwd=None):
    return subprocess.run([r.LAGGARD, *args], env=env or r.environment(), capture_output=True, text=True, cwd=cwd,
                          timeout=60)


def formats(tmp):
    script = f"eval \"$({r.LAGGARD} env -o {shlex.quote(tmp('a b'))})\"; exec {r.app('fastexit')} 3"
    done = r.run(["sh", "-c", script])
    r.equal((done.returncode, done.stderr), (0, b""), "sh")
    r.equal(len(r.one(tmp("a b")).of("kernel")), 3, "recorded through the shell's variables")
    variables = json.loads(laggard("env", "-o", tmp("j"), "-F", "json", "--ranks", "0-3", "--max-size", "8M").stdout)
    r.equal((variables["LAGGARD_RANKS"], variables["LAGGARD_MAX_SIZE"]), ("0-3", str(8 << 20)), "options")
    names = set(variables)
    k8s = laggard("env", "-o", tmp("j"), "-F", "k8s", "--ranks", "0-3").stdout.splitlines()
    r.equal({x.split()[-1] for x in k8s if x.startswith("- name:")}, names, "k8s")
    docker = laggard("env", "-o", tmp("j"), "-F", "docker", "--ranks", "0-3").stdout
    words = shlex.split(docker)
    r.equal({w.split("=")[0] for w, before in zip(words[1:], words) if before == "--env"}, names, "docker")
    r.check(any(w == f"{r.TRACER}:{r.TRACER}:ro" for w in words), "docker mounts the tracer")
    r.check(not os.path.exists(tmp("j")), "env makes no directory")


def names(tmp):
    env = r.environment({"RANK": "7", "SLURM_JOB_ID": "99", "WHO": "me"})
    shown = laggard("env", "-o", "%h.%r.%j.%q{WHO}.%%", "-F", "json", env=env, cwd=tmp.path)
    r.equal(json.loads(shown.stdout)["LAGGARD_DIR"], f"{tmp.path}/{socket.gethostname()}.7.99.me.%", "an output name")
    r.equal(laggard("env", "-o", "%x").returncode, 2, "an unknown escape")
    same = [json.loads(laggard("env", "-F", "json", env=r.environment({"SLURM_JOB_ID": "5", "SLURM_STEP_ID": "1"})).stdout)
            for _ in range(2)]
    r.equal({x["LAGGARD_RUN_ID"] for x in same}, {"slurm-5.1"}, "one run id for all nodes of a job step")
    done = r.record(tmp("deep", "er"), [r.app("fastexit"), "1"])
    r.equal((done.returncode, len(r.files(tmp("deep", "er")))), (0, 1), "directories above are made")
    done = subprocess.run([r.LAGGARD, "record", "-q", r.app("fastexit"), "1"], cwd=tmp.path, env=r.environment(),
                          capture_output=True, timeout=60)
    made = [d for d in os.listdir(tmp.path) if d.startswith("laggard-")]
    r.equal((done.returncode, len(made)), (0, 1), "the default directory")
    r.equal(len(r.files(tmp(made[0]))), 1, "holds the trace")


def places(tmp):
    """Installed where LD_PRELOAD cannot lead to: a message, not a loader's error in every process."""
    os.mkdir(tmp("with blank"))
    for path in (r.LAGGARD, r.TRACER):
        shutil.copy(path, tmp("with blank"))
    done = subprocess.run([tmp("with blank", "laggard"), "record", "-o", tmp("no"), "--", "true"], capture_output=True,
                          text=True, env=r.environment(), timeout=60)
    r.equal((done.returncode, len(done.stderr.splitlines())), (125, 1), "a tracer that cannot be preloaded")
    r.check("LD_PRELOAD cannot hold" in done.stderr, done.stderr)


def doctor(tmp):
    done = laggard("doctor", "-F", "json", "-o", tmp.path)
    found = json.loads(done.stdout)
    r.equal((done.returncode, found["complete"]), (0, True), f"doctor on the simulated stack: {done.stdout}")
    said = {x["what"]: x["text"] for x in reversed(found["findings"])}
    r.check("13.0" in said["driver"] and r.SIMGPU in said["cupti"] and "2.28.9" in said["nccl"], f"what it saw: {said}")
    done = laggard("doctor", "-o", "/proc", env=r.environment({"CUDA_INJECTION64_PATH": "/opt/tool.so"}))
    r.equal(done.returncode, 1, "doctor with a taken door")
    r.check("is taken by /opt/tool.so" in done.stdout and "/proc cannot be written" in done.stdout, done.stdout)


def main():
    r.need_simgpu()
    with r.Folder() as tmp:
        formats(tmp)
        names(tmp)
        places(tmp)
        doctor(tmp)


main()
