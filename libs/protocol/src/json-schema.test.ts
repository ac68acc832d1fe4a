import { describe, expect, test } from 'vitest';
import { POLICY_NAMES } from './execution-policy.ts';
import { toJsonSchema } from './json-schema.ts';
import { resultSchema } from './result-schema.ts';
import { sessionSpecSchema } from './session.ts';

describe('the JSON Schema of an option', () => {
  const { $defs: { SessionSpec, LimitOptions } = {} } = toJsonSchema(sessionSpecSchema, 'input');

  test('has the text with the default and the limit', () => {
    expect(SessionSpec?.properties?.image).toMatchObject({
      type: 'string',
      description:
        'Container image, `registry/name:tag` or `name@sha256:digest`. Refused under the policy `host`. ' +
        'Default: the image of the host. Limit: 256 characters.',
    });
    expect(SessionSpec?.properties?.priority).toMatchObject({ default: 0, minimum: 0, maximum: 1_000 });
    expect(LimitOptions?.properties?.cpus).toMatchObject({
      description:
        'Processors that the sandbox may keep busy; fractions are allowed. Default: 1. Limit: 0.01 to 1,024.',
    });
  });

  test('names another type by its id', () => {
    expect(SessionSpec?.properties?.limits).toMatchObject({ $ref: '#/$defs/LimitOptions' });
    expect(toJsonSchema(resultSchema, 'output')).toMatchObject({ $ref: '#/$defs/Result' });
  });

  test('accepts the name of a policy alone', () => {
    expect(SessionSpec?.properties?.policy).toMatchObject({
      oneOf: expect.arrayContaining([{ type: 'string', enum: [...POLICY_NAMES] }, { $ref: '#/$defs/DockerPolicy' }]),
    });
  });

  test('has no definition without a name, and no word that only we know', () => {
    const text = JSON.stringify([toJsonSchema(sessionSpecSchema, 'input'), toJsonSchema(resultSchema, 'output')]);
    for (const word of ['__schema', '"flag":', '"limit":', '"otherwise":', '"names":'])
      expect(text).not.toContain(word);
  });
});
