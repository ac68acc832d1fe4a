import { CallOrder } from '@shellfleet/concurrency';
import { readStoredSession } from '@shellfleet/mailbox';
import { type FileOperation, type HostReply, sessionKeys } from '@shellfleet/protocol';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { requestFromHost } from '../hosts/request-from-host.ts';
import { StepsBeside } from './steps-beside.ts';

vi.mock(import('@shellfleet/mailbox'), async (original) => ({ ...(await original()), readStoredSession: vi.fn() }));
vi.mock(import('../hosts/request-from-host.ts'), async (original) => ({
  ...(await original()),
  requestFromHost: vi.fn(),
}));

beforeEach(() => {
  vi.resetAllMocks();
  vi.mocked(readStoredSession).mockResolvedValue({ host: 'h' } as never);
});

/** Does one step, and returns the ids of its requests. The host replies `unknown` to all requests but the last. */
async function idsOf(operation: FileOperation): Promise<string[]> {
  const ids: string[] = [];
  vi.mocked(requestFromHost).mockImplementation(async (_context, _host, _keys, question) => {
    ids.push((question as { operation: string }).operation);
    const reply: HostReply<'file'> = ids.length < 3 ? { state: 'unknown' } : { state: 'done', epoch: 1, reply: {} };
    return reply as never;
  });
  let n = 0;
  const sealer = { signs: false, seal: () => '' };
  const context = { interceptors: { isEmpty: true }, nextId: () => `id${++n}`, sealer, redis: {} };
  const session = { id: 's', keys: sessionKeys('ns', 'tenant', 's'), generation: 'g' };
  const steps = new StepsBeside(context as never, session as never, new CallOrder());
  await (await steps.send(operation)).reply();
  return ids;
}

describe('file steps beside commands', () => {
  // mutants-3: `beside-id`. BESIDE-1.
  test.each<FileOperation>([
    { name: 'rename', path: '/a', to: '/b' },
    { name: 'remove', path: '/a', recursive: true },
    { name: 'mkdir', path: '/a' },
    { name: 'chmod', path: '/a', mode: 0o600 },
  ])('repeat a $name under the same id while its outcome is unknown', async (operation) => {
    expect(await idsOf(operation)).toEqual(['id1', 'id1', 'id1']);
  });

  test('repeat a read under a new id when its reply was lost', async () => {
    expect(await idsOf({ name: 'stat', path: '/a' })).toEqual(['id1', 'id2', 'id3']);
  });
});
