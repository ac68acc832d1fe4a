import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import { HttpProblem } from '../problems/http-problem.ts';

const NOT_UTF8 =
  'The body is not valid UTF-8, the encoding of JSON. Send it as UTF-8, whatever charset its type names.';

/** Reads bodies of JSON. An empty one is none: many clients name the type of every body, also of one that is absent. */
export function readJsonBodies(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeContentTypeParser('application/json');
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    if (body.byteLength === 0) return done(null, undefined);
    // Replacing invalid bytes would run another script than the one that the client sent.
    if (!isUtf8(body)) return done(new HttpProblem(400, 'COMMAND_INVALID', NOT_UTF8));
    return parse(request, body.toString(), done);
  });
}
