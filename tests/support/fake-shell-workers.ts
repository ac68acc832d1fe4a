import type { FakeSandbox } from '@shellfleet/worker/test-support';
import { vi } from 'vitest';

// Real workers in the process of a test, on a real Redis, with shells in memory: for hundreds of sessions at once.

vi.mock('../../apps/worker/src/shell/connect-shell.ts', () => ({
  connectShell: async (sandbox: FakeSandbox) => sandbox.keeper.connect(),
}));

export { ASKING, type FakeShellWorker, newFleet, startFakeShellWorker } from './fake-shell-worker.ts';
