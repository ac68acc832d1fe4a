import type { Principal } from '@shellfleet/access';
import type { Fleet } from '@shellfleet/client';
import type { ErrorCode } from '@shellfleet/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { WebSocket } from 'ws';
import type { z } from 'zod';
import type { NeededScope } from '../access/authorize.ts';
import type { Work, WorkOptions } from '../streams/open-work.ts';

// ROUTE-1. A route has one declaration: from it come the check of its scope, the parsing of the request and its part of
//     the OpenAPI document. A route without a scope does not compile, and only `open` routes answer without a key.

export type Shape = Record<string, z.ZodType>;
type Parsed<S extends Shape> = { [Name in keyof S]: z.output<S[Name]> };

/** A request with its parsed parts, and its caller. */
export interface Call<
  P extends Shape = Shape,
  Q extends Shape = Shape,
  H extends Shape = Shape,
  B extends z.ZodType = z.ZodType,
> {
  /** Parts of the path, decoded once. */
  params: Parsed<P>;
  query: Parsed<Q>;
  headers: Parsed<H>;
  /** The body as the client wrote it, after its schema has accepted it. */
  body: z.input<B>;
  principal: Principal;
  /** The fleet, as the caller and its tenant see it. It is open until the reply is sent. */
  fleet: Fleet;
  request: FastifyRequest;
  reply: FastifyReply;
  /** Begins a wait or a stream, which ends with the client, its key or the server. Its disposal forgets it. */
  beginWork(options?: WorkOptions): Work;
  /** Keeps the fleet open until a promise has settled, also after the reply. */
  keepFleetFor(promise: Promise<unknown>): void;
}

/** A WebSocket with the parsed parts of its request, and its caller. */
interface SocketCall<P extends Shape, Q extends Shape> {
  params: Parsed<P>;
  query: Parsed<Q>;
  /** Opens the fleet of the caller. The socket's messages have to be received before it is there. */
  openFleet(): Promise<Fleet>;
  socket: WebSocket;
  work: Work;
}

/** One reply of a route. */
export interface Reply {
  description: string;
  /** Schema of a JSON body. */
  schema?: z.ZodType;
  /** Media type of a body that is not JSON. */
  type?: string;
  /** Other media types of the body, with the schemas of JSON. */
  others?: Readonly<Record<string, z.ZodType | 'bytes'>>;
  /** Names of its own headers, with their meanings. */
  headers?: Readonly<Record<string, string>>;
}

export interface RouteDeclaration<P extends Shape, Q extends Shape, H extends Shape, B extends z.ZodType> {
  method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  /** Path below `/v1`, with `{name}` for a part, and `{name*}` for all parts that are left. */
  path: `/${string}`;
  scope: NeededScope;
  /** Name of the operation in clients that are made from the document. */
  operationId: string;
  summary: string;
  description?: string;
  params?: P;
  query?: Q;
  /** Headers that the route reads, by their names in lower case. Others are ignored. */
  headers?: H;
  /** Schema of a JSON body, or `bytes` for a body that the handler reads from `request.raw`. */
  body?: B | 'bytes';
  /** Media types that a body of bytes has besides `application/octet-stream`, if the handler distinguishes them. */
  bodyTypes?: readonly string[];
  /** Whether a body may be left out. */
  bodyOptional?: boolean;
  /** Code of the error about an invalid body. Default: COMMAND_INVALID. */
  bodyError?: ErrorCode;
  /** Most bytes of a JSON body. Default: 8 MiB. */
  bodyLimit?: number;
  /** Replies by status. Those of errors are added. */
  replies: Readonly<Record<number, Reply>>;
  /** Statuses of errors that other routes do not have. */
  problems?: readonly (416 | 426)[];
  /** Returns the JSON of the reply. Returns `reply` after it has sent something else. */
  handler(call: Call<P, Q, H, B>): Promise<unknown>;
  /** Serves a connection that became a WebSocket, until it is closed. */
  socket?(call: SocketCall<P, Q>): Promise<void>;
}

/** A declaration whose parts are no longer distinguished. */
export type Route = RouteDeclaration<Shape, Shape, Shape, z.ZodType>;

export function route<
  P extends Shape = Record<never, never>,
  Q extends Shape = Record<never, never>,
  H extends Shape = Record<never, never>,
  B extends z.ZodType = z.ZodUndefined,
>(declaration: RouteDeclaration<P, Q, H, B>): Route {
  // The parts that its handler receives were parsed with the schemas beside it.
  return declaration as unknown as Route;
}
