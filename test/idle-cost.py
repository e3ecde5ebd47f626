#!/usr/bin/env python3
"""Prints what sidecars cost that have nothing to do: connections to Redis, scripts, processor time, memory.

    make build && test/idle-cost.py [sidecars]

It starts a Redis of its own and the sidecars, and measures for a minute without receivers and for a minute with ten
receivers in each sidecar that wait on ten empty queues. Before each it waits until the sidecars have closed connections
that nothing needs. 200 sidecars take some 10 minutes and 8 GB of memory.
"""
import http.client, json, os, pathlib, socket, subprocess, sys, tempfile, threading, time

number = int(sys.argv[1]) if len(sys.argv) > 1 else 1
minute = 60
settled = 200  # seconds after which a sidecar has closed the connections that no call needs
with socket.create_server(("127.0.0.1", 0)) as free:
    port = str(free.getsockname()[1])
binary = pathlib.Path(__file__).resolve().parent.parent / "bin" / "sidebus"


def start(directory, i):
    command = [binary, "serve", "--store", f"redis://127.0.0.1:{port}"]
    for flag in ("http", "grpc", "admin"):
        command += [f"--{flag}-addr", f"unix://{directory}/{flag}{i}"]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def call(path, method, route, body):
    connection = http.client.HTTPConnection("localhost", timeout=400)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(path)
    connection.request(method, route, json.dumps(body))
    answer = connection.getresponse()
    if answer.status != 200:
        print(f"{route}: {answer.status} {answer.read()}", file=sys.stderr)


def info(section):
    out = subprocess.run(["redis-cli", "-p", port, "info", section], capture_output=True, text=True)
    return dict(line.split(":", 1) for line in out.stdout.splitlines() if ":" in line)


def processor(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def scripts():
    calls = info("commandstats")
    names = ("cmdstat_evalsha", "cmdstat_evalsha_ro")
    return sum(int(calls[name].split(",")[0].removeprefix("calls=")) for name in names if name in calls)


def measure(what, redis, sidecars):
    def sample():
        return time.time(), scripts(), processor(redis.pid), sum(processor(s.pid) for s in sidecars)

    before = sample()
    time.sleep(minute)
    span, ran, in_redis, in_sidecars = (b - a for a, b in zip(before, sample()))
    print(f"{number} sidecars, {what}: "
          f"{int(info('clients')['connected_clients']) - 1} connections, "
          f"{ran / span:.1f} scripts/s, Redis {in_redis / span:.2%} of a core, "
          f"a sidecar {in_sidecars / span / number:.2%} of a core and {resident(sidecars[number // 2].pid):.0f} MiB, "
          f"Redis {int(info('memory')['used_memory']) / 2**20:.1f} MiB", flush=True)


def main(directory):
    redis = subprocess.Popen(["redis-server", "--port", port, "--save", "", "--appendonly", "no"],
                             stdout=subprocess.DEVNULL)
    sidecars = []
    try:
        while not info("server"):
            if redis.poll() is not None:
                raise SystemExit(f"redis-server has ended; another program may have taken port {port}: run this again")
            time.sleep(0.1)
        for i in range(number):
            sidecars.append(start(directory, i))
            time.sleep(0.1)
        for i in range(number):
            subprocess.run([binary, "wait", "--timeout", "10m", "--admin-addr", f"unix://{directory}/admin{i}"], check=True)
        for q in range(10):
            call(f"{directory}/http0", "PUT", f"/v1/queues/q{q}", {})
        time.sleep(settled)
        measure("no receiver", redis, sidecars)
        for i in range(number):
            for q in range(10):
                waiting = (f"{directory}/http{i}", "POST", f"/v1/queues/q{q}/messages:receive", {"maxWait": "290s"})
                threading.Thread(target=call, args=waiting, daemon=True).start()
        time.sleep(settled)
        measure("10 receivers wait in each", redis, sidecars)
    finally:
        for process in [*sidecars, redis]:
            process.terminate()
            process.wait()


with tempfile.TemporaryDirectory() as scratch:
    main(scratch)
