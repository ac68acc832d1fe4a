import { KEEPER_PROTOCOL_VERSION } from '@shellfleet/keeper';
import { expect, test } from 'vitest';
import { parseLabels, toLabels } from './labels.ts';

test('labels come back as they were written, the version of the keeper protocol included', () => {
  const session = { namespace: 'shellfleet', tenant: 'default', session: 'agent-42' };
  const labels = {
    session,
    hostId: 'host-1',
    sandboxId: '0123456789ab',
    transport: 'socket',
    image: 'node:24',
  } as const;
  const written = toLabels({ ...labels, keeperProtocol: KEEPER_PROTOCOL_VERSION });
  expect(written['shellfleet.keeper-protocol']).toBe(String(KEEPER_PROTOCOL_VERSION));
  expect(parseLabels(written)).toEqual({ ...labels, keeperProtocol: KEEPER_PROTOCOL_VERSION });
});

test.each([
  ['nothing of ours', { maintainer: 'somebody' }],
  ['only some of the labels', { 'shellfleet.session': 'agent-42' }],
])('a container with %s is not ours', (_, labels) => {
  expect(parseLabels(labels)).toBeUndefined();
});
