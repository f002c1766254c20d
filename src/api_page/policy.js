// Whatever Swagger UI makes of a text, the browser takes it only as DOMPurify has cleaned it.
if (window.trustedTypes) {
  trustedTypes.createPolicy('default', { createHTML: (markup) => DOMPurify.sanitize(markup) });
}
