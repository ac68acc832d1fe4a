import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';

let stage: ClientStage;
beforeAll(async () => {
  stage = await setClientStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

const CLOSED = {
  code: 'QUEUE_UNAVAILABLE',
  message: 'This Fleet was closed. Accepted commands go on; fleet.command(id) of a new one finds them.',
};

describe('a Fleet', () => {
  test('rejects every call while the fleet closes and afterwards', async () => {
    const fleet = await stage.connect();
    const session = await fleet.session('s');
    const command = await session.submit('echo waits');
    const first = async <T>(items: AsyncIterable<T>) => {
      for await (const item of items) return item;
      throw new Error('it ended');
    };
    const calls = {
      session: () => fleet.session('t'),
      attach: () => fleet.attach('s'),
      sessions: () => first(fleet.sessions()),
      run: () => fleet.run('true'),
      command: () => fleet.command(command.id),
      hosts: () => fleet.hosts(),
      drain: () => fleet.drainHost('h'),
      cordon: () => fleet.cordonHost('h'),
      tenants: () => fleet.tenants(),
      tools: () => fleet.tools.list(),
      call: () => fleet.tools.call('t', {}),
      submit: () => session.submit('true'),
      info: () => session.info(),
      events: () => first(session.events({ after: '9999999999999-0' })),
      restart: () => session.restart(),
      close: () => session.close(),
      read: () => session.files.read('/etc/hostname'),
      terminal: () => session.attach(),
      result: () => command.result(),
      cancel: () => command.cancel(),
      output: () => first(command.output()),
    };
    const underWay = [calls.result(), calls.restart(), calls.read(), calls.events(), calls.output()].map((call) =>
      call.then(
        () => 'resolved',
        (error: unknown) => error,
      ),
    );
    await session.info();
    await fleet.close();
    for (const end of await Promise.all(underWay)) expect(end).toMatchObject(CLOSED);
    const ends = await Promise.all(
      Object.entries(calls).map(async ([name, call]) => {
        const end = await call().then(
          () => 'resolved',
          ({ code, message }) => ({ code, message }),
        );
        return [name, end] as const;
      }),
    );
    expect(Object.fromEntries(ends)).toEqual(Object.fromEntries(Object.keys(calls).map((name) => [name, CLOSED])));
  });

  test('accepts what was submitted before a reading or its close and not awaited', async () => {
    const fleet = await stage.connect();
    const session = await fleet.session('unawaited');
    const submits = [session.submit('echo 1'), session.submit('echo 2')];
    expect((await session.info()).queuedCommands).toBe(2);
    submits.push(session.submit('echo 3'));
    await fleet.close();
    const ids = (await Promise.all(submits)).map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
  });
});
