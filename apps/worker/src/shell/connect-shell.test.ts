import { KEEPER_PROTOCOL_VERSION } from '@shellfleet/keeper';
import { expect, test } from 'vitest';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { connectShell } from './connect-shell.ts';

test('a sandbox of a worker with another keeper protocol is not connected: PROTOCOL_MISMATCH, with both versions', async () => {
  const sandbox = { keeperProtocol: KEEPER_PROTOCOL_VERSION - 1 } as Sandbox; // its other fields are not used
  await expect(
    connectShell(sandbox, { fence: 1, deadlineMs: 1_000, start: false, onMessage: () => {} }),
  ).rejects.toMatchObject({
    code: 'PROTOCOL_MISMATCH',
    context: { keeper: KEEPER_PROTOCOL_VERSION - 1, worker: KEEPER_PROTOCOL_VERSION },
  });
});
