import { describe, expect, test } from 'vitest';
import { sinkSchema } from './sink-target.ts';

describe('the address of a sink', () => {
  test.each([
    ['file:///var/log/a b.jsonl', { type: 'file', path: '/var/log/a b.jsonl' }],
    ['unix:///run/logs', { type: 'unix', path: '/run/logs' }],
    ['tcp://logs.example:5170', { type: 'tcp', host: 'logs.example', port: 5170 }],
    ['tcp://[::1]:5170', { type: 'tcp', host: '::1', port: 5170 }],
  ])('is %s', (text, target) => {
    expect(sinkSchema.parse(text)).toEqual(target);
  });

  test.each([
    'stdout',
    'file://relative',
    'file:///',
    'tcp://logs.example',
    'tcp://:5170',
    'tcp://logs.example:0',
    'tcp://logs.example:70000',
    'tcp://user@logs.example:1',
    'tcp://logs.example:1/path',
    'http://logs.example:80',
    '/var/log/a.jsonl',
  ])('is not %s', (text) => {
    expect(sinkSchema.safeParse(text).success).toBe(false);
  });
});
