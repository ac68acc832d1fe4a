import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';

const valueSchema = z.object({
  stringValue: z.string().optional(),
  intValue: z.union([z.number(), z.string()]).optional(),
  doubleValue: z.number().optional(),
  boolValue: z.boolean().optional(),
});
const attributesSchema = z
  .array(z.object({ key: z.string(), value: valueSchema }))
  .transform((list) =>
    Object.fromEntries(
      list.map(({ key, value: { stringValue, intValue, doubleValue, boolValue } }) => [
        key,
        stringValue ?? (intValue === undefined ? undefined : Number(intValue)) ?? doubleValue ?? boolValue,
      ]),
    ),
  );
const spanSchema = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().default(''),
  name: z.string(),
  kind: z.number(),
  startTimeUnixNano: z.string(),
  endTimeUnixNano: z.string(),
  attributes: attributesSchema,
  events: z.array(z.object({ name: z.string() })).default([]),
  links: z.array(z.object({ traceId: z.string(), spanId: z.string() })).default([]),
  status: z.object({ code: z.number().default(0) }),
});
/** A request to export spans by OTLP, as JSON. */
const exportSchema = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: attributesSchema }),
      scopeSpans: z.array(z.object({ spans: z.array(spanSchema) })),
    }),
  ),
});

export type ExportedSpan = z.infer<typeof spanSchema> & { resource: Record<string, unknown> };

const KINDS = ['', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'];

export interface OtlpServer extends AsyncDisposable {
  readonly url: string;
  /** The spans of all requests as JSON. */
  readonly spans: readonly ExportedSpan[];
  /** The bodies of the requests as protobuf. */
  readonly protobuf: readonly Buffer[];
}

/** Starts a server that takes spans by OTLP over HTTP. With `hangs` it accepts requests and never replies. */
export async function startOtlpServer({ hangs = false } = {}): Promise<OtlpServer> {
  const spans: ExportedSpan[] = [];
  const protobuf: Buffer[] = [];
  const server = createServer(async (request, response: ServerResponse) => {
    const body = Buffer.concat(await request.toArray());
    if (hangs) return;
    if (request.url !== '/v1/traces') return void response.writeHead(404).end();
    if (request.headers['content-type'] === 'application/x-protobuf') protobuf.push(body);
    else {
      for (const { resource, scopeSpans } of exportSchema.parse(JSON.parse(body.toString())).resourceSpans)
        for (const scope of scopeSpans)
          spans.push(...scope.spans.map((span) => ({ ...span, resource: resource.attributes })));
    }
    response.writeHead(200, { 'content-type': request.headers['content-type'] }).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    protobuf,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Draws the spans of a trace as an indented tree with their kinds. Siblings are in the order of their names. */
export function drawTrace(spans: readonly ExportedSpan[], traceId: string): string {
  const ours = spans.filter((span) => span.traceId === traceId);
  const isInside = new Set(ours.map(({ spanId }) => spanId));
  const draw = (parent: ExportedSpan | undefined, depth: number): string[] =>
    ours
      .filter(({ parentSpanId }) =>
        parent === undefined ? !isInside.has(parentSpanId) : parentSpanId === parent.spanId,
      )
      .sort((a, b) => a.name.localeCompare(b.name) || a.kind - b.kind)
      .flatMap((span) => [`${'  '.repeat(depth)}${span.name} ${KINDS[span.kind]}`, ...draw(span, depth + 1)]);
  return draw(undefined, 0).join('\n');
}
