import type { EntryPayload, ResolvedSessionSpec } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { submissionEvent } from './session-events.ts';

const SECRET = 'hunter2-hunter2';
const redaction = {
  text: (text: string) => text.replaceAll(SECRET, '[REDACTED]'),
  value: <T>(value: T) => value,
};
const about = { session: 's', generation: 'g', entry: 'e' };
const spec = { policy: { type: 'docker' } } as ResolvedSessionSpec;
const eventOf = (script: string) =>
  submissionEvent(about, { acceptedAt: 0 }, { type: 'command', script } as EntryPayload, spec, redaction, {});

describe('the audited submission of a command', () => {
  test('cuts a script after its redaction, so no part of a secret remains', () => {
    const script = `${'#'.repeat(16_384 - 6)}${SECRET} rest`;
    const redacted = `${'#'.repeat(16_384 - 6)}[REDACTED] rest`;
    expect(eventOf(script)).toEqual({
      type: 'submission',
      ...about,
      kind: 'command',
      acceptedAt: '1970-01-01T00:00:00.000Z',
      policy: 'docker',
      script: redacted.slice(0, 16_384),
      scriptOmitted: redacted.length - 16_384,
    });
  });

  test('does not cut a script of exactly the greatest length', () => {
    expect(eventOf('#'.repeat(16_384))).not.toHaveProperty('scriptOmitted');
  });
});
