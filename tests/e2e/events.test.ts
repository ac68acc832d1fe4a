import type { SessionEvent } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

async function collect(events: AsyncIterable<SessionEvent>): Promise<SessionEvent[]> {
  const all: SessionEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

describe('the events of a session', () => {
  test('arrive in order and once, also for a reader that resumes', async () => {
    const session = await stack.fleet.session('events');
    const live = collect(session.events());
    const first = await session.run('echo one');
    await session.restart();
    const second = await session.run('echo err >&2; exit 2');
    await session.close();
    const events = await live;

    const stamp = { id: expect.stringMatching(/^\d+-\d+$/), at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) };
    const accepted = (commandId: string, kind = 'command') => ({
      ...stamp,
      type: 'command.accepted',
      commandId,
      data: expect.objectContaining({ kind }),
    });
    const started = (commandId: string) => ({ ...stamp, type: 'command.started', commandId, data: expect.any(Object) });
    const completed = (commandId: string, result: object) => ({
      ...stamp,
      type: 'command.completed',
      commandId,
      data: result,
    });
    const output = (commandId: string, stream: string, text: string) => ({
      ...stamp,
      type: 'command.output',
      commandId,
      data: { id: expect.any(String), stream, seq: 0, data: Buffer.from(text), text },
    });
    const restart =
      events.find(({ type, commandId }) => type === 'command.started' && commandId !== first.commandId)?.commandId ??
      '';
    const ofSession = events.filter(({ commandId }) => commandId === undefined).map(({ type }) => type);
    expect(ofSession).toEqual(['session.queued', 'session.opened', 'session.restarted', 'session.closed']);
    expect(events.find(({ type }) => type === 'session.opened')).toEqual({
      ...stamp,
      type: 'session.opened',
      data: {
        ...{ hostId: 'h1', epoch: 1, image: inject('sessionImage') },
        imageDigest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      },
    });
    expect(events.filter(({ commandId }) => commandId === first.commandId)).toEqual([
      accepted(first.commandId),
      started(first.commandId),
      output(first.commandId, 'stdout', 'one\n'),
      completed(first.commandId, first),
    ]);
    expect(events.filter(({ commandId }) => commandId === restart)).toEqual([
      accepted(restart, 'restart'),
      started(restart),
      completed(
        restart,
        expectedResult('events', {
          commandId: restart,
          imageDigest: undefined,
          shell: { state: 'lost', reason: 'restarted', epoch: 2 },
        }),
      ),
    ]);
    expect(events.filter(({ commandId }) => commandId === second.commandId).map(({ type }) => type)).toEqual([
      'command.accepted',
      'command.started',
      'command.output',
      'command.completed',
    ]);
    for (const [index, { id }] of events.entries())
      expect(await collect(session.events({ after: id }))).toEqual(events.slice(index + 1));
  });

  test('end at once for a reader whose signal aborts while no event arrives', async () => {
    const session = await stack.fleet.session('quiet');
    const leave = new AbortController();
    const reading = collect(session.events({ signal: leave.signal }));
    leave.abort(new Error('left'));
    await expect(reading).rejects.toThrow('left');
    const command = await session.submit('sleep 4321');
    const stop = new AbortController();
    const output = (async () => {
      for await (const _chunk of command.output({ signal: stop.signal }));
    })();
    stop.abort(new Error('stopped'));
    await expect(output).rejects.toThrow('stopped');
    expect(await command.cancel()).toBe(true);
  });
});
