import { type SessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { createSessionEgress } from '../egress/create-session-egress.ts';
import { networkOf } from './check-network.ts';

const LIMITED = { network: 'limited' } as const;
const specOf = (policy: SessionSpec['policy'], sandbox: SessionSpec['sandbox']) =>
  sessionSpecSchema.parse({ policy, sandbox });
const ofCommand = (network: 'restricted' | 'limited' | undefined, spec: ReturnType<typeof specOf>) =>
  networkOf({ network } as Parameters<typeof networkOf>[0], spec);

describe('the network of a command', () => {
  test('is that of its session, or narrower where the worker has the proxy', () => {
    expect(ofCommand(undefined, specOf('docker', LIMITED))).toBe('limited');
    expect(ofCommand('restricted', specOf('docker', LIMITED))).toBe('restricted');
  });

  test('is never narrower in a Pod, whose proxy knows of no command', () => {
    const spec = specOf('kubernetes', LIMITED);
    expect([ofCommand(undefined, spec), ofCommand('limited', spec)]).toEqual(['limited', 'limited']);
    expect(() => ofCommand('restricted', spec)).toThrow('the proxy of Pods does not know of commands');
    const settings = { hosts: [], privateAddresses: [] };
    const reports = { logger: pino({ level: 'silent' }), onRefused() {} };
    expect(createSessionEgress(spec, settings, reports)).toBeUndefined();
    expect(createSessionEgress(specOf('docker', LIMITED), settings, reports)).toBeDefined();
  });
});
