import { toJsonSchema } from '@shellfleet/protocol';
import type { z } from 'zod';
import { scopesOf } from '../access/authorize.ts';
import { problemSchema } from '../problems/to-problem.ts';
import type { Reply, Route, Shape } from '../routes/route.ts';
import { exampleOf } from './example-of.ts';
import { problemComponents, problemReplies } from './problem-replies.ts';

type Json = Record<string, unknown>;
const JSON_TYPE = 'application/json';

/** Returns the OpenAPI document of the declared routes. */
export function describeApi(routes: readonly Route[], version: string): Json {
  const schemas: Json = {};
  const paths: Record<string, Json> = {};
  const responses = problemComponents(toSchema(problemSchema, 'output', schemas));
  for (const route of routes) {
    const path = `/v1${route.path.replaceAll('*}', '}')}`;
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: toOperation(route, schemas) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Shellfleet', version, description: 'Persistent shells on a fleet of hosts. See docs/http.md.' },
    servers: [{ url: '/' }],
    security: [{ key: [] }],
    paths,
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'An API key, or a JWT of the issuer.' } },
      schemas,
      responses,
    },
  };
}

function toOperation(route: Route, schemas: Json): Json {
  const { operationId, summary, description, params, query, headers, body, bodyOptional, scope } = route;
  const content = body === undefined ? undefined : toContent(body, route.bodyTypes, schemas);
  const scopes = scopesOf(scope);
  const needs = scopes.length === 0 ? 'Any key may do this.' : `Needs the scope ${scopes.join(' or ')}.`;
  const parameters = [
    ...toParameters('path', params, schemas),
    ...toParameters('query', query, schemas),
    ...toParameters('header', headers, schemas),
  ];
  return {
    ...{ operationId, summary, description: [description, needs].filter(Boolean).join(' ') },
    tags: [route.path.split(/[/:]/)[1]],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(content === undefined ? {} : { requestBody: { required: !bodyOptional, content } }),
    responses: {
      ...problemReplies(route),
      ...Object.fromEntries(
        Object.entries(route.replies).map(([status, reply]) => [status, toResponse(reply, schemas)]),
      ),
    },
  };
}

function toParameters(place: 'path' | 'query' | 'header', shape: Shape = {}, schemas: Json): Json[] {
  // OpenAPI ignores parameters of these names: the media types of bodies describe them.
  const entries = Object.entries(shape).filter(([name]) => place !== 'header' || !/^(accept|content-type)$/.test(name));
  return entries.map(([name, schema]) => {
    const { description, ...rest } = toParameter(schema, schemas);
    const required = place === 'path' || !schema.safeParse(undefined).success;
    return { name, in: place, required, ...(description === undefined ? {} : { description }), schema: rest };
  });
}

/** Returns the schema of a parameter. A number of a query is accepted as any text, so its result is described. */
function toParameter(schema: z.ZodType, schemas: Json): Json {
  const given = toSchema(schema, 'input', schemas);
  const isAny = !['type', 'enum', 'const', 'anyOf', 'oneOf', '$ref'].some((word) => word in given);
  return isAny ? toSchema(schema, 'output', schemas) : given;
}

function toContent(body: z.ZodType | 'bytes', types: readonly string[] = [], schemas: Json): Json {
  if (body === 'bytes') return Object.fromEntries(['application/octet-stream', ...types].map((type) => [type, {}]));
  return toMedia(JSON_TYPE, body, 'input', schemas);
}

function toResponse({ description, schema, type, others = {}, headers }: Reply, schemas: Json): Json {
  const texts = Object.entries(headers ?? {});
  const content = schema === undefined ? type && { [type]: {} } : toMedia(type ?? JSON_TYPE, schema, 'output', schemas);
  return {
    description,
    ...(texts.length === 0 ? {} : { headers: Object.fromEntries(texts.map(([name, text]) => [name, toHeader(text)])) }),
    ...(content === undefined ? {} : { content: { ...content, ...toOthers(others, schemas) } }),
  };
}

/** Returns the content of a media type, with an example if it is JSON. */
function toMedia(type: string, schema: z.ZodType, io: 'input' | 'output', schemas: Json): Json {
  const made = toSchema(schema, io, schemas);
  const example = exampleOf(made, schemas);
  const hasExample = type === JSON_TYPE && schema.safeParse(example).success;
  return { [type]: { schema: made, ...(hasExample ? { example } : {}) } };
}

function toOthers(others: NonNullable<Reply['others']>, schemas: Json): Json {
  const contents = Object.entries(others).map(([type, body]) =>
    body === 'bytes' ? { [type]: {} } : toMedia(type, body, 'output', schemas),
  );
  return Object.assign({}, ...contents) as Json;
}

const toHeader = (description: string) => ({ description, schema: { type: 'string' } });

/** Returns the JSON schema, and moves the named schemas in it to the components of the document. */
function toSchema(schema: z.ZodType, io: 'input' | 'output', schemas: Json): Json {
  const text = JSON.stringify(toJsonSchema(schema, io)).replaceAll('"#/$defs/', '"#/components/schemas/');
  const { $schema: _schema, $defs = {}, ...rest } = JSON.parse(text) as Json;
  Object.assign(schemas, $defs);
  return rest;
}
