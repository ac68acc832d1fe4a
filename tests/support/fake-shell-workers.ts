import type { FakeSandbox } from '@shellfleet/worker/test-support';
import { vi } from 'vitest';

// Real workers in the process of a test, on a real Redis, with shells in memory: for hundreds of sessions at once.

vi.mock('../../apps/worker/src/shell/connect-shell.ts', () => ({
  connectShell: async (sandbox: FakeSandbox) => sandbox.keeper.connect(),
}));

// What is re-exported in one statement would be evaluated before the mock is there.
export const { ASKING, newFleet, startFakeShellWorker } = await import('./fake-shell-worker.ts');
export type { FakeShellWorker } from './fake-shell-worker.ts';
