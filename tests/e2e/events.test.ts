import type { FleetEvent, SessionEvent } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

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

describe('the events of the fleet', () => {
  test('show sessions of all tenants, ends of commands, questions and hosts to who follows', async () => {
    const { fleet } = stack;
    const other = await stack.connect({ tenant: 'other' });
    const seen: FleetEvent[] = [];
    const stop = new AbortController();
    const of = (id: string) => seen.flatMap((event) => ('sessionId' in event && event.sessionId === id ? [event] : []));
    const following = (async () => {
      for await (const event of fleet.events({ allTenants: true, signal: stop.signal })) seen.push(event);
    })();
    following.catch(() => {});
    const probe = await fleet.session('probe');
    await until(
      async () => {
        await probe.run(':');
        return of('probe');
      },
      (events) => events.length > 0,
    );
    await fleet.cordonHost('h1');
    await until(
      () => seen.map(({ type }) => type),
      (types) => types.includes('host.cordoned'),
    );
    await fleet.uncordonHost('h1');
    await (await other.session('open')).run(':');
    const session = await other.session('watched', { approval: 'unless-trusted' });
    const result = await session.run('ls');
    const asking = await session.submit('touch asked; seq 100000');
    const [question] = await until(
      () => other.approvals.list(),
      (questions) => questions.length === 1,
    );
    await other.approvals.approve(question?.id ?? '');
    await asking.result();
    await (await fleet.session('own')).run('exit 3');
    await session.close();
    await until(
      () => of('watched').map(({ type }) => type),
      (types) => types.includes('session.closed'),
    );
    await until(
      () => seen.map(({ type }) => type),
      (types) => types.includes('host.uncordoned'),
    );
    const stamp = { id: expect.stringMatching(/^\d+-\d+$/), at: expect.any(String), sessionId: 'watched' };
    const about = (type: string, data: object, commandId?: string) => ({
      ...{ ...stamp, type, tenant: 'other', data },
      ...(commandId === undefined ? {} : { commandId }),
    });
    const id = question?.id;
    expect(of('watched')).toEqual([
      about('session.queued', {}),
      about('session.opened', expect.objectContaining({ hostId: 'h1', epoch: 1 })),
      about('command.completed', { outcome: 'success' }, result.commandId),
      about('approval.requested', { id, expiresAt: question?.expiresAt }, asking.id),
      about('approval.answered', expect.objectContaining({ id, decision: 'approved' }), asking.id),
      about('command.completed', { outcome: 'success' }, asking.id),
      about('session.closed', {}),
    ]);
    expect(of('own').at(-1)).toMatchObject({ type: 'command.completed', data: { outcome: 'failure' } });
    stop.abort();
    await expect(following).rejects.toThrow();

    // Stored events can be read afterwards, those of other tenants only with the flag.
    const cli = new FleetCli(stack);
    const read = async (...flags: string[]) => {
      const { stdout } = await cli.text(['events', '--since', of('watched')[0]?.id ?? '', '--json', ...flags]);
      return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as FleetEvent]));
    };
    expect(await read('--all-tenants')).toEqual(expect.arrayContaining(of('watched')));
    const own = await read();
    expect(own).toEqual(expect.arrayContaining(of('own')));
    expect(own).not.toEqual(expect.arrayContaining([expect.objectContaining({ tenant: 'other' })]));
  });
});
