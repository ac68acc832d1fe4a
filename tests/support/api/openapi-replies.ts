import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ApiDocument, ApiRequest, Operation } from './openapi-requests.ts';

interface Reply {
  status: number;
  type: string;
  /** The body. Undefined for a stream of events, which has no end, and for HEAD. */
  text: string | undefined;
}

/** Time after which a client leaves a request that waits for something, as for a host. */
const PATIENCE_MS = 1_000;
const PROBLEM = 'application/problem+json';

/** Sends a request as it is, without the corrections of `fetch`. Returns undefined for a reply that waits. */
export function sendRaw(
  url: string,
  key: string,
  { method, path, headers, body }: ApiRequest,
): Promise<Reply | undefined> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const all = { authorization: `Bearer ${key}`, ...headers, ...(body === undefined ? {} : lengthOf(body)) };
    const sent: ClientRequest = request({ hostname, port, method, path, headers: all }, (reply) => {
      read(reply, method)
        .then(resolve, reject)
        .finally(() => sent.destroy());
    });
    sent.setTimeout(PATIENCE_MS, () => {
      resolve(undefined);
      sent.destroy();
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const lengthOf = (body: string) => ({ 'content-length': String(Buffer.byteLength(body)) });

async function read(reply: IncomingMessage, method: string): Promise<Reply> {
  const [type = ''] = (reply.headers['content-type'] ?? '').split(';');
  const head = { status: reply.statusCode ?? 0, type };
  if (method === 'HEAD' || type === 'text/event-stream') return { ...head, text: undefined };
  const pieces = await Array.fromAsync(reply);
  return { ...head, text: Buffer.concat(pieces as Buffer[]).toString() };
}

/** Tells how replies differ from what a document says of their operations. */
export class ReplyCheck {
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false });

  constructor(document: ApiDocument) {
    this.#ajv.addSchema(document, 'api');
  }

  /** Returns what is wrong with a reply, or undefined. */
  problemOf({ operationId, responses }: Operation, { status, type, text }: Reply): string | undefined {
    if (status >= 500 && status !== 503) return `${status}: ${text}`;
    if (responses[String(status)] === undefined) return `${operationId} does not document ${status}: ${text}`;
    if (status >= 400 && type !== PROBLEM) return `${status} has the type ${type}`;
    if (text === undefined) return undefined;
    if (status >= 400) return this.#checkProblem(status, text);
    const media = responses[String(status)]?.content ?? {};
    if (Object.keys(media).length === 0) return text === '' ? undefined : `${status} has an undocumented body: ${text}`;
    const schema = media[type]?.schema;
    if (media[type] === undefined) return `${status} has the type ${type}, which is not documented`;
    if (schema === undefined || type !== 'application/json') return undefined;
    return this.#check(toReference(schema), JSON.parse(text));
  }

  #checkProblem(status: number, text: string): string | undefined {
    const body = JSON.parse(text) as { status?: number };
    if (body.status !== status) return `${status} has a body about ${body.status}`;
    return this.#check({ $ref: 'api#/components/schemas/Problem' }, body);
  }

  #check(schema: object, body: unknown): string | undefined {
    return this.#ajv.validate(schema, body) ? undefined : `${this.#ajv.errorsText()}: ${JSON.stringify(body)}`;
  }
}

/** Returns a schema of the document whose references work outside it. */
const toReference = (schema: object) => JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/')) as object;
