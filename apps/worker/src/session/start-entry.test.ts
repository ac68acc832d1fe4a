import { sessionKeys } from '@shellfleet/protocol';
import { pino } from 'pino';
import { describe, expect, test, vi } from 'vitest';
import { finishUnauthorized } from '../run/run-entry.ts';
import { classifyTaken } from './start-entry.ts';
import type { Step } from './step.ts';

const ENTRY = { id: 'e', retry: 'never', inbox: '' };

/** An entry that Redis hands out as not begun. */
function taken(of: {
  known?: boolean;
  verifies?: boolean;
  lost?: boolean;
  runs?: string;
  called?: string;
  retry?: string;
}) {
  const { known = true, verifies = true, lost = false, runs = '', called, retry = 'never' } = of;
  const refuse = vi.fn(() => {
    throw new Error('UNAUTHORIZED');
  });
  const context = {
    journal: { knows: () => known },
    redisLosses: { mayHaveHappened: () => lost },
    owner: { keys: sessionKeys('n', 't', 's') },
    generation: 'g',
    sealer: { verifies, refuse },
    logger: pino({ level: 'silent' }),
  };
  const files = { hasBegun: async (id: string) => id === called };
  const parts = { context, shell: { reconnect: async () => ({ entryId: runs }), live: { files } } };
  const classified = Promise.resolve(
    classifyTaken({ ...ENTRY, retry, kind: called === undefined ? 'command' : 'file' } as never, parts as never),
  );
  return classified.then((step) => ({
    step: describeStep(step),
    reports: refuse.mock.calls.map(([, problem]: unknown[]) => problem),
  }));
}

function describeStep(step: Step): string {
  if (step.type === 'start') return 'never-began';
  if (step.type === 'run') return step.from === 'resume' ? 'runs-here' : step.from;
  if (step.type !== 'end') return step.type;
  return step.how === finishUnauthorized ? 'replayed' : 'lost';
}

describe('a taken entry', () => {
  test.each([
    ['an entry that this host has not begun', { known: false }, 'never-began'],
    ['a begun entry on a host without keys', { verifies: false }, 'lost'],
    ['a begun entry that the keeper still runs', { lost: true, runs: 'e' }, 'runs-here'],
    ['a begun file operation that the keeper has begun', { lost: true, called: 'e' }, 'runs-here'],
    ['a begun file operation that the keeper does not have', { lost: true, called: 'other' }, 'lost'],
    ['a begun entry from a Redis that may have lost data', { lost: true }, 'lost'],
    [
      'a begun idempotent entry from a Redis that may have lost data',
      { lost: true, retry: 'idempotent' },
      'never-began',
    ],
  ] as const)('is classified, without a report: %s', async (_title, of, step) => {
    expect(await taken(of)).toEqual({ step, reports: [] });
  });

  test.each(['never', 'idempotent'])(
    'is refused if its id was begun before and Redis has lost nothing: %s',
    async (retry) => {
      expect(await taken({ retry })).toEqual({ step: 'replayed', reports: ['this host began it before'] });
    },
  );
});
