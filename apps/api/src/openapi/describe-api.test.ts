import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { ROUTES } from '../routes/index.ts';
import { describeApi } from './describe-api.ts';

interface Media {
  schema?: { $ref?: string };
  example?: unknown;
}
interface Operation {
  operationId: string;
  parameters?: { name: string }[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, { $ref?: string; content?: Record<string, Media> }>;
}
type Document = {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object> };
};

const document = JSON.parse(JSON.stringify(describeApi(ROUTES, '1.2.3'))) as Document;
const operations = Object.values(document.paths).flatMap((path) => Object.values(path));

describe('the OpenAPI document', () => {
  test('is valid OpenAPI 3.1', async () => {
    expect(await new Validator().validate(structuredClone(document))).toMatchObject({ valid: true });
  });

  test('has one operation of each name, for each route', () => {
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(ROUTES.length);
  });

  test('has schemas that a validator of JSON Schema 2020-12 compiles', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema(document, 'api');
    for (const name of Object.keys(document.components.schemas))
      expect(() => ajv.compile({ $ref: `api#/components/schemas/${name}` }), name).not.toThrow();
  });

  test('tells of every operation how it ends without a key, and otherwise', () => {
    for (const { operationId, responses } of operations) {
      const statuses = Object.keys(responses);
      expect(statuses, operationId).toEqual(expect.arrayContaining(['400', '401', '429', '500', '503', 'default']));
      expect(
        statuses.some((status) => /^[123]/.test(status)),
        operationId,
      ).toBe(true);
      expect(responses['401']).toEqual({ $ref: '#/components/responses/Problem-401' });
    }
  });

  test('names the media types of bodies in their contents, not as headers that OpenAPI ignores', () => {
    const { put, get } = document.paths['/v1/sessions/{id}/files/{path}'] ?? {};
    expect(Object.keys(put?.requestBody?.content ?? {})).toEqual(['application/octet-stream', 'application/x-tar']);
    expect(Object.keys(get?.responses['200']?.content ?? {})).toContain('application/x-tar');
    const names = operations.flatMap(({ parameters = [] }) => parameters.map(({ name }) => name));
    expect(names.filter((name) => ['accept', 'content-type', 'authorization'].includes(name))).toEqual([]);
  });

  test('has an example of every body of JSON, which its schema accepts', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema(document, 'api');
    const toRefs = (schema: object) => JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/')) as object;
    for (const { operationId, requestBody, responses } of operations) {
      const bodies = [requestBody, ...Object.values(responses)].flatMap(
        (one) => one?.content?.['application/json'] ?? [],
      );
      for (const { schema = {}, example } of bodies) {
        expect(example, operationId).toBeDefined();
        expect(ajv.validate(toRefs(schema), example), `${operationId}: ${ajv.errorsText()}`).toBe(true);
      }
    }
  });

  test('names the types of the SDK', () => {
    const bodyOf = (operationId: string, status: string) =>
      operations.find((one) => one.operationId === operationId)?.responses[status]?.content?.['application/json']
        ?.schema;
    expect(bodyOf('getSession', '200')).toEqual({ $ref: '#/components/schemas/SessionInfo' });
    expect(bodyOf('submitCommand', '200')).toEqual({ $ref: '#/components/schemas/Result' });
    expect(Object.keys(document.components.schemas).filter((name) => name.startsWith('__'))).toEqual([]);
  });
});
