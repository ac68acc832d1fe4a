import type { HostInfo, SessionInfo } from '@shellfleet/client';
import { describe, expect, test } from 'vitest';
import { describeWait } from './describe-wait.ts';

const INFO: SessionInfo = {
  ...{ id: 's', state: 'queued', hostId: null, epoch: 0, queuedCommands: 1, background: [], labels: {} },
  ...{ createdAt: '2026-01-01T00:00:00.000Z', lastActiveAt: '2026-01-01T00:00:00.000Z' },
};
const HOST: HostInfo = {
  ...{ id: 'h1', state: 'up', slots: 4, free: 0, sessions: 4, running: 4, commandsPerSecond: 0 },
  ...{ policies: ['docker'], version: '1', configuration: 0, seenAt: '2026-01-01T00:00:00.000Z' },
};
const words = (
  info: Partial<SessionInfo>,
  hosts: HostInfo[] = [],
  questions: Parameters<typeof describeWait>[0]['questions'] = [],
) => describeWait({ info: { ...INFO, ...info }, hosts, questions });

describe('the words about a session', () => {
  test('name its place, its turn, what it needs and wishes, and each host', () => {
    const hosts: HostInfo[] = [
      HOST,
      { ...HOST, id: 'h2', cordoned: true },
      { ...HOST, id: 'h3', state: 'draining' },
      { ...HOST, id: 'h4', state: 'unreachable' },
      { ...HOST, id: 'h5', problems: ['Its engine is away.'] },
    ];
    const needs = { policy: 'docker', image: 'python:3.13' };
    const wishes = { image: 'python:3.13', near: 'db' };
    expect(words({ position: 2, queueLength: 3, etaMs: 4_200, needs, wishes }, hosts)).toEqual([
      'All slots are taken: s waits for one (2nd of 3).',
      'If slots are freed as often as recently, it has one in about 5 s.',
      'Its host must accept: policy docker, image python:3.13.',
      'For 2 s from when it is next, it is left to a host that has the image python:3.13 or that has session db.',
      'Host h1 has 0 of 4 slots free.',
      'Host h2 is cordoned.',
      'Host h3 is draining.',
      'Host h4 does not answer.',
      'Host h5 takes no new session: Its engine is away.',
    ]);
  });

  test.each<[string, Partial<SessionInfo>, string[]]>([
    [
      'no estimate',
      { position: 1 },
      [
        'All slots are taken: s waits for one (1st of 1).',
        'How long that takes is not known yet, because no slot was freed recently.',
      ],
    ],
    [
      'a free slot',
      { position: 1, etaMs: 0 },
      ['s waits for a slot, and by the last heartbeats one is free for it, so a host takes it at any moment.'],
    ],
    [
      'a quota',
      { position: 1, etaMs: 60_000, atQuota: { quota: 'maxSessions', used: 2, limit: 2 } },
      [
        'The tenant has 2 of 2 sessions (maxSessions): s waits until one of them gives its slot up (1st of 1).',
        'If slots are freed as often as recently, it has one in about 60 s.',
      ],
    ],
    ['no host', { noHostReason: 'No host is up.' }, ['No host is up. s waits until one can.']],
    [
      'its host',
      { state: 'unreachable', hostId: 'h1' },
      ['The host h1 of s does not answer. s waits until it is back, or until another host may take it over.'],
    ],
    ['its shell', { state: 'starting', hostId: 'h1' }, ['Its shell is being opened on the host h1.']],
    [
      'a running command',
      { state: 'busy', hostId: 'h1', runningCommandId: 's.1', queuedCommands: 2 },
      ['s.1 runs on the host h1. 2 commands wait behind it, as a session runs one at a time.'],
    ],
    [
      'nothing, while its last command runs',
      { state: 'busy', hostId: 'h1', runningCommandId: 's.1', queuedCommands: 0 },
      ['s.1 runs on the host h1.'],
    ],
    [
      'its turn',
      { state: 'ready', hostId: 'h1' },
      ['1 command waits in s, and nothing is known that delays the first.'],
    ],
    [
      'nothing',
      { state: 'ready', hostId: 'h1', queuedCommands: 0 },
      ['Nothing waits in session s: its shell on the host h1 is ready.'],
    ],
    ['nothing, without a slot', { queuedCommands: 0 }, ['Nothing waits in session s: it has no slot, and needs none.']],
    ['its close', { state: 'closing' }, ['Session s is being closed.']],
    [
      'nothing, as it is closed',
      { state: 'closed', closedAt: 'T', closeReason: 'a caller closed it' },
      ['Session s was closed at T: a caller closed it.'],
    ],
  ])('say that it waits for %s', (_what, info, sentences) => {
    expect(words(info)).toEqual(sentences);
  });

  test('quote the question that a person has to answer', () => {
    const question = { id: 'q1', reason: 'it may write', expiresAt: '2026-01-01T00:10:00.000Z' };
    expect(words({ heldCommandId: 's.1', position: 1 }, [HOST], [question])).toEqual([
      's.1 waits for an approval; `shellfleet approvals watch` shows why, and how to answer.',
      'The question q1, until 2026-01-01T00:10:00.000Z: it may write',
    ]);
  });

  test('name the pulls of the host that opens its shell', () => {
    const pulls = [{ image: 'python:3.13', doneBytes: 47, totalBytes: 100 }];
    expect(words({ state: 'starting', hostId: 'h1' }, [{ ...HOST, pulls }]).at(-1)).toBe(
      'The host pulls images: python:3.13 47 %.',
    );
  });
});
