import { describe, expect, test } from 'vitest';
import { parseFieldSelector, parseLabelSelector } from './selectors.ts';
import type { KubeObject } from './store.ts';

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a', namespace: 'n', labels: { 'shellfleet.dev/pool': 'p', empty: '' } },
  spec: { nodeName: 'one' },
  status: { phase: 'Running' },
} as unknown as KubeObject;

describe('selectors of labels', () => {
  test.each([
    ['', true],
    ['shellfleet.dev/pool=p', true],
    ['shellfleet.dev/pool==p,empty=', true],
    ['shellfleet.dev/pool!=p', false],
    ['none!=p', true],
    ['shellfleet.dev/pool in (o, p)', true],
    ['shellfleet.dev/pool notin (o,p)', false],
    ['none notin (o)', true],
    ['none in (o)', false],
    ['empty', true],
    ['!empty', false],
    ['!none,empty', true],
  ])('%j', (selector, matches) => {
    expect(parseLabelSelector(selector)(pod)).toBe(matches);
  });

  test('refuse other text', () => {
    expect(() => parseLabelSelector('a b')).toThrow("unable to parse requirement: found 'a b'");
  });
});

describe('selectors of fields', () => {
  test.each([
    ['metadata.name=a', true],
    ['metadata.name!=a', false],
    ['spec.nodeName=one,status.phase!=Failed', true],
  ])('%j', (selector, matches) => {
    expect(parseFieldSelector('pods', selector)(pod)).toBe(matches);
  });

  test('refuse unknown fields', () => {
    expect(() => parseFieldSelector('leases', 'spec.nodeName=one')).toThrow('field label not supported: spec.nodeName');
  });
});
