import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

describe.each(['socket', 'attach'] as const)('the network of a session over %s', (transport) => {
  let stack: TestFleet;
  beforeAll(async () => {
    stack = await startFleet({ transport });
  });
  afterAll(() => stack[Symbol.asyncDispose]());

  // S0-39
  test('is a loopback of its own that works by name, and nothing else', async () => {
    const [one, other] = await Promise.all([
      stack.fleet.session(`net-${transport}-1`),
      stack.fleet.session(`net-${transport}-2`),
    ]);
    const links = await one.run('cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d " "');
    expect(
      links.stdout
        .trim()
        .split('\n')
        .filter((name) => !/^(tunl|sit|gre|erspan|ip6)/.test(name)),
    ).toEqual(['lo']);
    const serve = `python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 &
      until python3 -c 'import socket; socket.create_connection(("localhost", 8123), 1)' 2>/dev/null; do sleep 0.1; done; echo up`;
    expect(await one.run(serve)).toMatchObject({ outcome: 'success', stdout: 'up\n' });
    const reach = (to: string) => `python3 -c 'import socket; socket.create_connection(${to}, 1)' 2>&1 | tail -n 1`;
    expect((await other.run(reach('("localhost", 8123)'))).stdout).toContain('refused');
    expect((await other.run(reach('("192.0.2.1", 80)'))).stdout).toContain('unreachable');
    await Promise.all([one.close(), other.close()]);
  });
});
