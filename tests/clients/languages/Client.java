import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** java Client.java variable|address PROMPT: one answer whole and one streamed, printed as they came. */
public class Client {
    static final String ADDRESS = "https://api.openai.com/v1";

    public static void main(String[] given) throws Exception {
        String named = System.getenv("OPENAI_BASE_URL");
        String base = given[0].equals("variable") && named != null ? named : ADDRESS;
        HttpClient client = HttpClient.newHttpClient();
        for (String more : new String[] {"", "\"stream\": true, "}) {
            String asked = "{\"model\": \"gpt-x\", " + more
                + "\"messages\": [{\"role\": \"user\", \"content\": \"" + given[1] + "\"}]}";
            HttpRequest request = HttpRequest.newBuilder(URI.create(base + "/chat/completions"))
                .header("content-type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(asked))
                .build();
            HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(answer.body());
            if (answer.statusCode() != 200) System.exit(1);
        }
    }
}
