import { type ErrorCode, parseOrThrow } from '@shellfleet/protocol';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Route, Shape } from './route.ts';

/** Returns a function that parses the parts of a request. It throws the error that its declaration names. */
export function parserOf({ params, query, headers, body, bodyOptional, bodyError = 'COMMAND_INVALID' }: Route) {
  const parse = {
    params: strictly('The path', params),
    query: strictly('The query', query),
    headers: loosely('A header', headers),
  };
  return (request: FastifyRequest) => {
    const parts = {
      params: parse.params(named(request.params, params)),
      query: parse.query(request.query),
      headers: parse.headers(request.headers),
    };
    if (typeof body !== 'object') return { ...parts, body: undefined };
    if (bodyOptional && isAbsent(request.body)) return { ...parts, body: undefined };
    parseOrThrow(body, request.body, bodyError, 'The body');
    return { ...parts, body: request.body };
  };
}

type Parse = (given: unknown) => Record<string, unknown>;
const CODE: ErrorCode = 'COMMAND_INVALID';

function strictly(what: string, shape: Shape = {}): Parse {
  const schema = z.strictObject(shape);
  return (given) => parseOrThrow(schema, given, CODE, what);
}

function loosely(what: string, shape: Shape = {}): Parse {
  const schema = z.object(shape);
  return (given) => parseOrThrow(schema, given, CODE, what);
}

/** Renames the parts of a path that the router calls `*`. */
function named(params: unknown, shape: Shape = {}): unknown {
  const { '*': rest, ...others } = (params ?? {}) as Record<string, string>;
  const last = Object.keys(shape).at(-1);
  return rest === undefined || last === undefined ? others : { ...others, [last]: rest };
}

const isAbsent = (body: unknown) => body === undefined || body === null;
