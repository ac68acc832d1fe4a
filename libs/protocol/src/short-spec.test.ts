import { describe, expect, test } from 'vitest';
import { toCanonicalJson } from './canonical-json.ts';
import { sessionSpecSchema } from './session.ts';
import type { SessionSpec } from './session-spec.ts';
import { toShortSpec } from './short-spec.ts';

const SPECS: SessionSpec[] = [
  {},
  { limits: { memoryBytes: 64 * 2 ** 20 }, env: { A: '1' }, commandTimeoutMs: 5 },
  { policy: 'host', labels: { team: 'a' } },
  { policy: { type: 'docker', readOnlyRootfs: true }, workspace: { path: '/w', target: '/elsewhere' } },
  { policy: 'bubblewrap', sandbox: { mode: 'read-only' }, redaction: [{ type: 'email', strategy: 'mask' }] },
  { cwd: '/tmp', secrets: { TOKEN: 'hunter2-hunter2' }, hosts: { gpu: 'yes' } },
];

describe('a short spec', () => {
  // SHORT-1
  test.each(SPECS)('parses to the spec that it stands for: %j', (given) => {
    const spec = sessionSpecSchema.parse(given);
    expect(toCanonicalJson(sessionSpecSchema.parse(JSON.parse(toShortSpec(spec))))).toBe(toCanonicalJson(spec));
  });

  test('has only what differs from a default, and what is read without parsing', () => {
    const { commandTimeoutMs, output, ...others } = JSON.parse(toShortSpec(sessionSpecSchema.parse({ cwd: '/tmp' })));
    expect([typeof commandTimeoutMs, typeof output.streamBytes, others]).toEqual(['number', 'number', { cwd: '/tmp' }]);
  });

  // A version with another default would read the specs of open sessions differently.
  test('stands for these defaults, which change only with SCHEMA_VERSION', () => {
    expect(toCanonicalJson(sessionSpecSchema.parse({}))).toMatchInlineSnapshot(
      `"{"approvalTimeoutMs":600000,"commandTimeoutMs":600000,"cwd":"/workspace","env":{},"hostGraceMs":60000,"hosts":{},"idleTimeoutMs":1800000,"keepOnFailure":false,"labels":{},"limits":{"cpus":1,"memoryBytes":536870912,"pids":256},"maxLifetimeMs":86400000,"onHostLoss":"fail","output":{"keep":"head-tail","maxBytes":262144,"maxLines":10000,"streamBytes":8388608},"policy":{"readOnlyRootfs":false,"type":"docker"},"priority":0,"redactFormats":true,"redaction":[],"secrets":{},"shutdownCommands":[],"startupCommands":[],"startupTimeoutMs":30000,"terminationTimeoutMs":10000}"`,
    );
  });
});
