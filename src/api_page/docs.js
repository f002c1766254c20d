// Shows the server's own description. Tokens are not kept: a reload forgets them.
window.docs = SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  displayOperationId: false,
  docExpansion: 'list',
  filter: true,
  persistAuthorization: false,
  presets: [SwaggerUIBundle.presets.apis],
  tryItOutEnabled: false,
  validatorUrl: null,
});
