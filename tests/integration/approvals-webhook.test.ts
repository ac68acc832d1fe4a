import { createHmac } from 'node:crypto';
import { Fleet } from '@shellfleet/client';
import { type ApprovalAnnouncement, approvalAnnouncementSchema, approvalKeys } from '@shellfleet/protocol';
import { startWebhookReceiver, type WebhookReceiver } from '@shellfleet/worker/test-support';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type FakeShellWorker, newFleet, startFakeShellWorker } from '../support/fake-shell-workers.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/until.ts';

// Two real workers, whose shells are in memory, announce questions to a real HTTP server.

const SECRET = 'a secret that both sides have, of 40 chars';

let own: OwnRedis;
beforeAll(async () => {
  own = await startOwnRedis();
});
afterAll(() => own?.[Symbol.asyncDispose]());

let fleet: Fleet;
let workers: FakeShellWorker[];
let receiver: WebhookReceiver;
let of: ReturnType<typeof newFleet>;
beforeEach(async () => {
  of = newFleet();
  receiver = await startWebhookReceiver();
  workers = await Promise.all(['h1', 'h2'].map(startWorker));
  fleet = await Fleet.connect({ redisUrl: own.url, namespace: of.namespace, sealKeys: [of.sealKey] });
});
afterEach(async () => {
  await fleet?.close();
  await Promise.all(workers?.map(({ worker }) => worker.close('end', 1_000)));
  await receiver?.[Symbol.asyncDispose]();
});

const startWorker = (id: string) => {
  const url = new URL(`http://user:pass@127.0.0.1:${receiver.port}/hooks/T0KEN?key=K3Y`);
  return startFakeShellWorker({ redisUrl: own.url, ...of, id, webhook: { url, secret: SECRET } });
};
const open = (id: string) => fleet.session(id);
const announced = (): ApprovalAnnouncement[] =>
  receiver.received.map(({ body }) => approvalAnnouncementSchema.parse(JSON.parse(body)));
const scripts = () => announced().map(({ approval }) => approval.script);
/** Returns whether a question waits for its announcement. */
const isDue = async () => (await own.redis.exists(approvalKeys(of.keyspace, 'default').unannounced)) === 1;
const untilPending = (count: number) =>
  until(
    () => fleet.approvals.list(),
    (all) => all.length === count,
  );

describe('announcements of questions', () => {
  test('are sent once for a fleet, signed, however many sessions ask the question', async () => {
    const secret = 'hunter2-hunter2';
    const spec = { secrets: { PASSWORD: secret } };
    const commands = await Promise.all(
      Array.from({ length: 6 }, async (_, index) =>
        (await fleet.session(`s${index}`, spec)).submit(`ask ${secret}`, { env: { TOKEN: 'of the command' } }),
      ),
    );
    const [question] = await until(
      () => fleet.approvals.list(),
      ([first]) => first?.count === commands.length,
    );
    await until(isDue, (due) => !due);
    expect(announced()).toEqual([
      {
        version: 1,
        type: 'approval.requested',
        namespace: of.namespace,
        tenant: 'default',
        approval: {
          ...question,
          count: expect.any(Number),
          sessionId: expect.any(String),
          commandId: expect.any(String),
        },
      },
    ]);
    const [{ body = '', headers = {} } = {}] = receiver.received;
    const [, seconds, signature] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['shellfleet-signature'])) ?? [];
    expect(signature).toBe(createHmac('sha256', SECRET).update(`${seconds}.${body}`).digest('hex'));
    expect(body).not.toMatch(new RegExp(`${secret}|of the command|${SECRET}`));
    await fleet.approvals.deny(question?.id ?? '');
    await Promise.all(commands.map((command) => command.result()));
    expect(receiver.received.length).toBe(1);
  });

  test('are sent again to a receiver that fails, while approvals go on', async () => {
    // The receiver never replies.
    receiver.status = undefined;
    const session = await open('s');
    const answered = await session.submit('ask and be answered');
    const [question] = await untilPending(1);
    await until(scripts, ({ length }) => length > 0);
    await fleet.approvals.approve(question?.id ?? '');
    expect(await answered.result()).toMatchObject({ outcome: 'success' });
    // An answered question is announced no more.
    expect(await isDue()).toBe(false);

    receiver.status = 500;
    const waits = await session.submit('ask and wait');
    await until(scripts, (all) => all.filter((script) => script === 'ask and wait').length >= 2);
    const warnings = (
      await until(
        () => fleet.hosts(),
        (hosts) => hosts.some((host) => (host.warnings ?? []).length > 0),
      )
    ).flatMap((host) => host.warnings ?? []);
    const problem = /^The webhook for questions fails: it (answered with 500|did not answer in time)\.$/;
    expect(warnings.filter((warning) => !problem.test(warning))).toEqual([]);
    receiver.status = 204;
    await until(isDue, (due) => !due);
    const sent = receiver.received.length;
    await waits.cancel();
    await waits.result();
    expect(receiver.received.length).toBe(sent);
  });

  test('are sent by the next worker after an outage of the receiver and all workers', async () => {
    const { port } = receiver;
    await receiver[Symbol.asyncDispose]();
    await (await open('s')).submit('ask before the restart');
    await untilPending(1);
    await Promise.all(workers.map(({ worker }) => worker.close('hand-over', 0)));
    expect(await isDue()).toBe(true);
    receiver = await startWebhookReceiver(port);
    workers = [await startWorker('h3')];
    await until(scripts, ({ length }) => length > 0);
    await until(isDue, (due) => !due);
    expect(new Set(scripts())).toEqual(new Set(['ask before the restart']));
  });

  test('are sent a few at a time if there are many', async () => {
    const asked = Array.from({ length: 24 }, (_, index) => `ask ${index}`);
    await Promise.all(asked.map(async (script, index) => (await open(`s${index}`)).submit(script)));
    await until(scripts, ({ length }) => length === asked.length);
    expect(scripts().sort()).toEqual(asked.sort());
    // Each of the two hosts sends at most four at a time.
    expect(receiver.mostAtOnce).toBeLessThanOrEqual(8);
  });

  test('log the host of the webhook, but no other part of its address', async () => {
    receiver.status = 500;
    await (await open('s')).submit('ask');
    await until(
      () => workers.map(({ log }) => log()).join(''),
      (log) => log.includes('approvals.announce-failed'),
    );
    const log = workers.map((worker) => worker.log()).join('');
    expect(log).toContain(`127.0.0.1:${receiver.port}`);
    expect(log).not.toMatch(/T0KEN|K3Y|user:pass|a secret that/);
  });
});
