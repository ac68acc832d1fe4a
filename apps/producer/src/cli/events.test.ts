import { describe, expect, test } from 'vitest';
import { formatEvent } from './events.ts';

const at = '2026-01-01T00:00:00.000Z';

describe('an event of the fleet', () => {
  test('is shown with what it is about and its data', () => {
    const ofSession = { id: '1-0', at, tenant: 'acme', sessionId: 'a' };
    expect(
      formatEvent({ ...ofSession, type: 'command.completed', commandId: 'a.X', data: { outcome: 'failure' } }),
    ).toBe(`${at} command.completed  acme a.X outcome=failure`);
    expect(formatEvent({ ...ofSession, type: 'session.lost', data: { reason: 'it died\u001b[2J' } })).toBe(
      String.raw`${at} session.lost       acme a reason=it died\u001b[2J`,
    );
    expect(formatEvent({ at, type: 'host.cordoned', hostId: 'h1' })).toBe(`${at} host.cordoned      h1`);
    expect(formatEvent({ at, type: 'events.missed' })).toBe(`${at} events.missed     `);
  });
});
