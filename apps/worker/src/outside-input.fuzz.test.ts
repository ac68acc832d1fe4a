import { fuzz, fuzzBytes, fuzzText } from '@shellfleet/protocol/test-support';
import { describe, expect, test } from 'vitest';
import { ConfigError, readConfig } from './config/config.ts';
import { decodeFrames, encodeOverflowFrame } from './overflow-log/overflow-frame.ts';
import { parseLabels, toLabels } from './sandbox/docker/labels.ts';
import { parseReport } from './tools/parse-report.ts';

// The environment, labels of containers, files of the overflow log, and reports of tools are each used or refused.

describe('input from outside', () => {
  test('an environment is accepted, or refused by an error without the value', () => {
    const valid = {
      SHELLFLEET_REDIS_URL: 'redis://:hunter2@h:1',
      SHELLFLEET_NAMESPACE: 'n',
      SHELLFLEET_HOST_ID: 'h',
      SHELLFLEET_SLOTS: '3',
      SHELLFLEET_POLICIES: 'docker,host',
      SHELLFLEET_HOST_USER: '1000:1000',
      SHELLFLEET_WORKSPACES: '/srv/a,/srv/b',
      SHELLFLEET_USERS: 'root',
      SHELLFLEET_TRANSPORT: 'attach',
      SHELLFLEET_OVERFLOW_LOG_AGE_MS: '5000',
      SHELLFLEET_TOOLS: '/x.ts',
      DOCKER_HOST: 'unix:///x',
    };
    fuzz([valid], (value) => {
      const texts = Object.entries(value ?? {}).map(([name, text]) => [
        name,
        typeof text === 'string' ? text : '5e999',
      ]);
      try {
        readConfig(Object.fromEntries(texts));
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError);
        expect((error as Error).message).toMatch(/^(SHELLFLEET_[A-Z_]+ [^;]+(; )?)+$/);
        expect((error as Error).message).not.toContain('hunter2');
      }
    });
  });

  test('labels of a container are those of a session’s sandbox, or are ignored', () => {
    const session = { namespace: 'n', tenant: 't', session: 's' };
    const labels = {
      namespace: 'n',
      session,
      hostId: 'h',
      sandboxId: 'abcdef012345',
      transport: 'socket',
      keeperProtocol: 5,
    } as const;
    fuzz([toLabels(labels)], (value) => {
      const entries = Object.entries(value ?? {}).filter(([, text]) => typeof text === 'string');
      const parsed = parseLabels(Object.fromEntries(entries));
      if (parsed !== undefined) expect(parseLabels(toLabels(parsed))).toEqual(parsed);
    });
  });

  test('a broken file of an overflow log returns its complete frames', () => {
    const piece = { stream: 'stdout', rawFrom: 0, rawTo: 3, bytesBefore: 0, newlinesBefore: 0 } as const;
    const frame = { ...piece, order: 1, redactions: { email: 2 }, data: Buffer.from('abc') };
    const whole = Buffer.concat(encodeOverflowFrame(frame));
    fuzzBytes([whole, Buffer.concat([whole, whole])], (bytes) => {
      const { frames, wholeBytes } = decodeFrames('stdout', Buffer.from(bytes));
      expect(wholeBytes).toBeLessThanOrEqual(bytes.length);
      expect(Buffer.concat(frames.flatMap(encodeOverflowFrame))).toEqual(Buffer.from(bytes.subarray(0, wholeBytes)));
    });
  });

  test('a report of a tool’s process is valid, or ignored', () => {
    const valid = [
      '{"type":"output","redacted":true}\n{"a":1}',
      '{"type":"failed","error":{"code":"raised","message":"m"}}\n',
      '{"type":"refused","message":"m"}\n',
    ];
    fuzzText(valid, (text) => {
      const parsed = parseReport(Buffer.from(text));
      if (parsed !== undefined) expect(['described', 'refused', 'output', 'failed']).toContain(parsed.report.type);
    });
  });
});
