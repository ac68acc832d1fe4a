import { KEEPER_PROTOCOL_VERSION } from '@shellfleet/keeper';
import { describe, expect, test } from 'vitest';
import { parseLabels, type SandboxLabels, toLabels } from './labels.ts';

const LABELS: SandboxLabels = {
  namespace: 'shellfleet:0123456789ab',
  session: { namespace: 'shellfleet:0123456789ab', tenant: 'default', session: 'agent-42' },
  ...{ hostId: 'host-1', sandboxId: '0123456789ab', transport: 'socket', keeperProtocol: KEEPER_PROTOCOL_VERSION },
  image: 'node:24',
};

const { 'shellfleet.tenant': _tenant, ...withoutTenant } = toLabels(LABELS);

describe('parseLabels', () => {
  test('returns the written labels, with namespace and fleet apart', () => {
    const written = toLabels(LABELS);
    expect(written).toEqual({
      'shellfleet.namespace': 'shellfleet',
      'shellfleet.fleet': '0123456789ab',
      'shellfleet.tenant': 'default',
      'shellfleet.session': 'agent-42',
      'shellfleet.host': 'host-1',
      'shellfleet.sandbox': '0123456789ab',
      'shellfleet.transport': 'socket',
      'shellfleet.keeper-protocol': String(KEEPER_PROTOCOL_VERSION),
      'shellfleet.image': 'node:24',
    });
    expect(parseLabels(written)).toEqual(LABELS);
  });

  test('returns no session for a container that gets one later', () => {
    const { session: _session, ...spare } = LABELS;
    const written = toLabels(spare);
    expect(Object.keys(written)).not.toContain('shellfleet.session');
    expect(parseLabels(written)).toEqual(spare);
  });

  test.each([
    ['a session without its tenant', withoutTenant],
    ['nothing of ours', { maintainer: 'somebody' }],
    ['only some of the labels', { 'shellfleet.session': 'agent-42' }],
    ['the labels of a version without identities of fleets', { ...toLabels(LABELS), 'shellfleet.fleet': '' }],
  ])('returns undefined for a container with %s', (_, labels) => {
    expect(parseLabels(labels)).toBeUndefined();
  });
});
