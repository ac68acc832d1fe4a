// The table of what a persistent shell does, run in every shell that an image may have. Each row begins in a fresh
// shell.
import { describe, expect, test } from 'vitest';
import type { KeeperBox } from '../support/keeper-container.ts';
import { type BoxOptions, type ShellBox, useBox } from '../support/shell-box.ts';
import type { Ran } from '../support/shell-client.ts';
import type { Case, ShellName, Step } from '../support/shell-semantics/case.ts';
import { endings } from '../support/shell-semantics/endings.ts';
import { input } from '../support/shell-semantics/input.ts';
import { names } from '../support/shell-semantics/names.ts';
import { output } from '../support/shell-semantics/output.ts';
import { surroundings } from '../support/shell-semantics/surroundings.ts';
import { syntax } from '../support/shell-semantics/syntax.ts';
import { traps } from '../support/shell-semantics/traps.ts';

const shells: [string, ShellName, BoxOptions][] = [
  ['bash', 'bash', { image: 'session' }],
  ['bash without the builtin', 'bash', { image: 'session', env: { SF_LOOP: '1' } }],
  ['dash', 'dash', { image: 'dashOnly' }],
  ['ash', 'ash', { image: 'busybox' }],
];
const states: Record<string, Record<string, string>> = {
  bash: { resumed: 'kept', signalled: 'partial', mended: 'kept' },
  'bash without the builtin': { resumed: 'kept', signalled: 'partial', mended: 'partial' },
  dash: { resumed: 'partial', signalled: 'lost', mended: 'partial' },
  ash: { resumed: 'partial', signalled: 'lost', mended: 'partial' },
};
const topics: Record<string, Case[]> = { endings, names, traps, surroundings, syntax, input, output };

const isAt = (found: string, expected: string | RegExp) =>
  typeof expected === 'string' ? expect(found).toBe(expected) : expect(found).toMatch(expected);

async function follow(it: ShellBox<KeeperBox>, name: string, step: Step): Promise<void> {
  const ran: Ran = 'restart' in step ? await it.client.restart() : await it.client.run(step.run, step.with);
  const { out, err, state, signal, ...rest } = 'restart' in step ? step.restart : step.gives;
  const shown = { ...ran.end.shell, script: 'run' in step ? step.run : 'restart', out: ran.out, err: ran.err };
  if (state) expect({ ...shown, state: ran.state }).toEqual({ ...shown, state: states[name]?.[state] ?? state });
  if (signal !== undefined) expect(ran.end).toMatchObject({ signal, reason: signal === null ? 'exited' : 'signalled' });
  expect(ran).toMatchObject(rest);
  if (out !== undefined) isAt(ran.out, out);
  if (err !== undefined) isAt(ran.err, err);
  if ('withinMs' in step && step.withinMs) expect(ran.ms).toBeLessThan(step.withinMs);
}

describe.each(shells)('%s', (name, shell, options) => {
  const it = useBox(options);
  describe.each(Object.keys(topics))('%s', (topic) => {
    const cases = (topics[topic] ?? []).filter((one) => one.in?.includes(shell) ?? true);
    // `$title` would be cut to 40 characters.
    test.each(cases.map((one) => [one.title, one.steps] as const))('%s', async (_title, steps) => {
      await it.client.restart();
      for (const step of steps) await follow(it, name, step);
      expect(await it.client.run('echo ok')).toMatchObject({ out: 'ok\n' });
    });
  });
});
