import type { createHostMailbox, HostMailboxCalls } from '@shellfleet/mailbox';
import type { FakeMailbox } from './fake-mailbox.ts';

export const staged: { mailbox?: FakeMailbox } = {};

const NAMES = ['adopt', 'announce', 'peek', 'take', 'append', 'rerun', 'finish', 'release', 'withdraw'] as const;

/** Returns `@shellfleet/mailbox` with the calls of the staged mailbox instead of scripts, for `vi.mock`. */
export function inMemory(original: object): object {
  const { createHostMailbox: create } = original as { createHostMailbox: typeof createHostMailbox };
  const call =
    (name: (typeof NAMES)[number]) =>
    (...args: unknown[]) => {
      staged.mailbox!.calls.push(name);
      return (staged.mailbox!.functions[name] as (...given: unknown[]) => unknown)(...args);
    };
  const calls = Object.fromEntries(NAMES.map((name) => [name, call(name)])) as Partial<HostMailboxCalls>;
  const inMemory: typeof createHostMailbox = (owner, options) => create(owner, options, calls);
  return { ...original, createHostMailbox: inMemory, notify: async () => {} };
}
