import type { FakeMailbox } from './fake-mailbox.ts';

/** The mailbox of the test that runs. */
export const staged: { mailbox?: FakeMailbox } = {};

const NAMES = [
  'grant',
  'adopt',
  'announce',
  'peek',
  'take',
  'append',
  'rerun',
  'finish',
  'release',
  'withdraw',
] as const;

/** The package `@shellfleet/mailbox` with the functions of the staged mailbox in place of those that call Redis; for `vi.mock`. */
export function inMemory(original: object): object {
  const call =
    (name: (typeof NAMES)[number]) =>
    (...args: unknown[]) => {
      staged.mailbox!.calls.push(name);
      return (staged.mailbox!.functions[name] as (...given: unknown[]) => unknown)(...args);
    };
  return { ...original, ...Object.fromEntries(NAMES.map((name) => [name, call(name)])), notify: async () => {} };
}
